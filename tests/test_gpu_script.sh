#!/bin/sh
# test_gpu_script.sh ROOT [COLDBENCH]: scripts/gpu.sh without a GPU: what a cut leaves and where the next call
# goes on, what is counted, what is refused. Its coldbench, sanitizer and PyTorch are stand-ins, but for the
# records, which the real coldbench makes on the scripted device.
set -u
root=$1
program=${2:-}
command -v python3 >/dev/null || { echo "no python3 for scripts/gpu_records.py" >&2 && exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
out=$scratch/out

# fault TEXT: with what was said.
fault() {
    echo "$*"
    sed 's/^/    /' "$scratch/said"
    failed=1
}
# expect STATUS WORDS ARGUMENTS...: gpu.sh ends so, and says that.
expect() {
    want=$1 words=$2
    shift 2
    sh "$root/scripts/gpu.sh" "$@" --out "$out" >"$scratch/said" 2>&1
    got=$?
    [ "$got" = "$want" ] || fault "gpu.sh $*: status $got, not $want"
    [ -z "$words" ] || grep -qF -e "$words" "$scratch/said" || fault "gpu.sh $*: does not say: $words"
}
said() {
    grep -qF -e "$1" "$scratch/said" || fault "it does not say: $1"
}

# ---- stand-ins ----
# Writes a record with the decision on line N of $scratch/decisions at the Nth call (tie where there is none);
# "fail", "gone" (no device), "slow", "late" (stopped by timeout), "partial", "wrong" (an output), "unfit" (a
# selftest that is not passed), "impossible" (a rate) and "unsaved" (status 5 beside a record) are what else can happen.
mkdir "$scratch/bin" "$scratch/python" "$scratch/python/triton"
cat >"$scratch/bin/coldbench" <<'END'
#!/usr/bin/env python3
import json, os, sys, time
here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(here + "/calls", "a+") as calls:
    calls.seek(0)
    n = len(calls.readlines())
    calls.write(" ".join(sys.argv[1:]) + "\n")
decisions = open(here + "/decisions").read().split() if os.path.exists(here + "/decisions") else []
decision = decisions[n] if n < len(decisions) else "tie"
if decision == "gone":
    print("coldbench: no driver here")
    sys.exit(3)
if decision == "late":
    sys.exit(124)
if decision == "fail":
    print('coldbench: a "bad\\" day')
    sys.exit(5)
while decision == "slow" and os.path.exists(here + "/calls"):
    time.sleep(0.05)
# theta(A, A2) is +-1 % by turns; every other block of a round says 0.1 % more than the ones between.
rounds, samples, order = 6, [], []
for r in range(rounds):
    t = 1.01 if r % 2 else 1 / 1.01
    samples.append([[100, 100 * t * (1.001 if b % 2 else 1), 100] for b in range(8)])
    order.append([[0, 1, 2] if b % 4 < 2 else [2, 1, 0] for b in range(8)])
result = {"decision": decision, "ratio": {"lo": 1, "mid": 1.002, "hi": 1.01}, "measure_s": 0.5, "rounds": rounds,
          "blocks": 48, "thetas": [{"theta_aa2": 0.01 if r % 2 else -0.01} for r in range(rounds)],
          "samples_ns": samples, "order": order,
          "covariates": [{"slot": [3, 1, 8], "startup_s": 0.2, "measure_s": 0.05, "block_involuntary": [0] * 8}] * rounds}
if decision == "wrong":
    result.update(decision="incomparable", ratio=None, rounds=0, thetas=[], samples_ns=[], order=[], covariates=[])
if decision == "impossible":
    result["verdict"] = decision
record = {"schema": "coldbench/1", "complete": decision != "partial", "passed": decision != "unfit", "results": [result]}
json.dump(record, open(sys.argv[sys.argv.index("--json") + 1], "w"), indent=2)
sys.exit({"tie": 0, "slower": 0, "partial": 130, "wrong": 1, "unfit": 1, "impossible": 1, "unsaved": 5}.get(decision, 4))
END
cat >"$scratch/bin/compute-sanitizer" <<'END'
#!/bin/sh
here=$(dirname "$0")/..
echo "$*" >>"$here/sanitized"
case $(cat "$here/sanitizer") in
clean) printf '========= ERROR SUMMARY: 0 errors\n========= ERROR SUMMARY: 0 errors\n' ;;
dirty) printf '========= ERROR SUMMARY: 0 errors\n========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n' ;;
wrong)
    printf 'WRONG alu_chain/cuda\n========= ERROR SUMMARY: 0 errors\n'
    exit 1
    ;;
blind) echo '========= Error: Device not supported' ;;
esac
END
cat >"$scratch/bin/launch_codes" <<'END'
#!/bin/sh
[ "$1" = -l ] || exit
[ ! -e "$(dirname "$0")/../real" ] || exec "$(cat "$(dirname "$0")/../real")" -l
echo alu_chain/cuda none && for i in 1 2 3 4 5 6 7 8; do echo "peak_mma@type=$i/cuda shared"; done
END
chmod +x "$scratch/bin/coldbench" "$scratch/bin/compute-sanitizer" "$scratch/bin/launch_codes"
cat >"$scratch/python/torch.py" <<'END'
__version__ = "0"
bfloat16 = 0
class cuda:
    is_available = staticmethod(lambda: True)
    get_device_name = staticmethod(lambda: "none")
def randn(*shape, **how):
    return 0
END
echo '__version__ = "0"' >"$scratch/python/triton/__init__.py"
cat >"$scratch/python/triton/testing.py" <<'END'
times = [1, 1.02, 1, 0.98, 1, 1.005] * 2
def do_bench(call, return_mode):
    return times.pop(0)
END
export PATH="$scratch/bin:$PATH" PYTHONPATH="$scratch/python" COLDBENCH="$scratch/bin/coldbench"

# counts FILE: how often each item and number is there, as "item n times".
counts() {
    sed 's/^{"item":"\([^"]*\)","n":\([0-9]*\),.*}$/\1 \2/' "$1" | sort | uniq -c | awk '{ print $2, $3, $1 }'
}
all_of_aa() {
    for item in alu_chain gemv_q4-9MB stream_read-64MiB; do
        for n in $(seq "$1"); do echo "$item $n 1"; done
    done
}

# ---- what is refused ----
expect 2 "no part"
expect 2 "no part or option 'prob'" prob
expect 2 "--count needs a value" aa --count ""
expect 2 "--minutes soon is no number" aa --minutes soon
expect 2 "--count 0 is no number of times" aa --count 0
expect 2 "--count 00 is no number of times" probe --count 00
expect 2 "--count 99999999999999999999 is no number of times" planted --count 99999999999999999999
expect 3 "no coldbench at /nowhere" aa --coldbench /nowhere
expect 3 "no coldbench at /nowhere" decode --coldbench /nowhere
expect 0 "sanitize" --help
expect 0 "Nothing of it is here" summary
expect 0 "run-ACT-tokens2.json" --help
said "decode up"
expect 0 "" -h

# ---- time, cuts ----
expect 4 "aa: the time is over" aa --count 3 --minutes 0
[ ! -e "$scratch/calls" ] || fault "something was measured in no time"
for signal in TERM KILL; do
    rm -rf "$out" "$scratch/calls"
    printf '%s\n' tie tie tie tie slow >"$scratch/decisions"
    sh "$root/scripts/gpu.sh" aa --count 2 --out "$out" >"$scratch/said" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ "$(grep -c . "$scratch/calls" 2>/dev/null)" != 5 ]; do sleep 0.05; done
    kill -s $signal $pid
    wait $pid 2>/dev/null
    got=$?
    rm "$scratch/decisions" "$scratch/calls" # ends what SIGKILL leaves behind
    [ $signal = KILL ] || [ "$got" = 130 ] || fault "ended by SIG$signal: status $got, not 130"
    [ "$(counts "$out/aa.jsonl" | wc -l)" = 4 ] || fault "SIG$signal: not four comparisons are kept"
    [ "$(counts "$out/aa.jsonl" | grep -c ' 1 1$')" = 3 ] || fault "SIG$signal: not one of each item is kept first"
    [ $signal = TERM ] || printf '{"item":"alu_chain","n":2,"st' >>"$out/aa.jsonl"
    expect 0 "of 2" aa --count 2
    [ "$(counts "$out/aa.jsonl")" = "$(all_of_aa 2)" ] || fault "after SIG$signal it goes on with: $(counts "$out/aa.jsonl")"
    [ $signal = TERM ] || said "the torn last line is gone"
done
ls "$out"/whole/aa-alu_chain-2.json.gz >/dev/null || fault "no record is kept whole"
calls=$(wc -l <"$scratch/calls")
expect 0 "" aa --count 2
[ "$(wc -l <"$scratch/calls")" = "$calls" ] || fault "what is there is measured again"

# ---- counts: nine of identical code, one of them called different, one open, one failed ----
printf '%s\n' tie slower tie inconclusive tie fail tie tie tie >"$scratch/decisions"
rm -rf "$out" "$scratch/calls"
expect 5 "aa: 1 of 9 comparisons failed, or a side was wrong" aa --count 3
expect 5 "aa: 1 of 9 comparisons failed, or a side was wrong" aa --count 3
expect 0 "9 comparisons: 1 called different, 6 tie (66.7 %)" summary
said "| stream_read-64MiB | 3 | 2 tie, 1 slower | +0.200 |"
said "| gemv_q4-9MB | 3 | 2 tie, 1 inconclusive | +0.200 |"
said "| alu_chain | 3 | 2 tie, 1 failed | +0.200 |"
# theta of 1 % of 100, blocks that say +-0.05 %: 18 rounds of 8 blocks.
expect 0 "| stream_read-64MiB | 18 | 8 | 1.000 | 0.050 | 0.999 |" processes
said "| 200 | 6250 | 3x1x8 | more rounds, more rounds, more rounds | 32 |"
printf '%s\n' fail fail fail >"$scratch/decisions"
rm -rf "$out" "$scratch/calls"
expect 5 "three comparisons in a row failed: coldbench: a bad day" planted
[ "$(grep -c '"words":"coldbench: a bad day"}$' "$out/planted.jsonl")" = 3 ] || fault "failures are not told"
expect 5 "planted: 3 of 3 comparisons failed" planted --count 3
expect 0 "| alu_chain+1% | 3 | 3 failed | - |" summary
said "| - | - | 0 |"
! grep -q nan "$scratch/said" || fault "a median of nothing is shown"
printf '%s\n' tie wrong inconclusive unsaved >"$scratch/decisions"
rm -rf "$out" "$scratch/calls"
expect 5 "planted: 2 of 4 comparisons failed, or a side was wrong" planted --count 4
calls=$(wc -l <"$scratch/calls")
expect 4 "planted: the time is over" planted probe --count 5 --minutes 0
expect 5 "planted: 2 of 4 comparisons failed, or a side was wrong" planted --count 4
[ "$(wc -l <"$scratch/calls")" = "$calls" ] || fault "what failed is measured again"
expect 0 "| alu_chain+1% | 4 | 1 tie, 1 inconclusive, 1 wrong, 1 failed | +0.200 |" summary
said "4 comparisons: 0 called different, 1 tie (25.0 %)"

# ---- commands whose record tells of a fault, or whose status does ----
for row in unfit:selftest impossible:run:run-q8-1 impossible:probe:probe-quick; do
    part=${row#*:}
    rm -rf "$out" "$scratch/calls"
    echo "${row%%:*}" >"$scratch/decisions"
    [ "$part" = selftest ] || printf 'tie\n%s\n' "${row%%:*}" >"$scratch/decisions"
    for call in first second; do
        expect 5 "${part#*:}: not passed, wrong or impossible" "${part%:*}" --count 1
        [ "$call" = second ] || calls=$(wc -l <"$scratch/calls")
    done
    [ "$(wc -l <"$scratch/calls")" = "$calls" ] || fault "$part: a record that is there is measured again"
done
[ -s "$out/probe-1.json" ] || fault "a part ends at the first fault"
rm -rf "$out" "$scratch/calls"
echo unfit >"$scratch/decisions"
expect 5 "planted: alu_chain+1% 1 of 1" selftest planted --count 1
rm -rf "$out" "$scratch/calls"
echo unsaved >"$scratch/decisions"
expect 5 "selftest: failed (status 5)" selftest
[ ! -e "$out/selftest.json" ] || fault "the record of a command that failed is kept"
expect 0 "selftest: status 0" selftest
expect 0 "" selftest
rm -rf "$out" "$scratch/calls"
echo inconclusive >"$scratch/decisions"
expect 0 "selftest: status 4" selftest

echo gone >"$scratch/decisions"
rm -rf "$out" "$scratch/calls"
expect 3 "coldbench: no driver here" planted
[ ! -s "$out/planted.jsonl" ] || fault "what could not begin is counted"
echo partial >"$scratch/decisions"
rm -rf "$out" "$scratch/calls"
expect 130 "interrupted" planted
[ ! -s "$out/planted.jsonl" ] || fault "half a comparison is counted"

# ---- sanitizer ----
rm -rf "$out" "$scratch/calls"
echo blind >"$scratch/sanitizer"
expect 3 "memcheck saw nothing of alu_chain-1" sanitize
said "Device not supported"
[ ! -s "$out/sanitize.jsonl" ] || fault "what was not seen is counted"
echo clean >"$scratch/sanitizer"
expect 0 "racecheck peak_mma-2: 0 errors or hazards" sanitize
grep -q 'racecheck .* alu_chain' "$scratch/sanitized" && fault "racecheck is given what has no shared memory"
calls=$(wc -l <"$scratch/sanitized")
expect 0 "" sanitize
[ "$(wc -l <"$scratch/sanitized")" = "$calls" ] || fault "what was looked at is looked at again"
sed 's/"item":"peak_mma-2","variants":"[^"]*"/"item":"peak_mma-2","variants":"of long ago"/' "$out/sanitize.jsonl" >"$scratch/old" &&
    cp "$scratch/old" "$out/sanitize.jsonl"
expect 0 "racecheck peak_mma-2: 0 errors or hazards" sanitize
[ "$(wc -l <"$scratch/sanitized")" = $((calls + 2)) ] || fault "an item with other codes than then is not looked at again"
grep -q "of long ago" "$out/sanitize.jsonl" && fault "codes of long ago are still counted"
grep -q -e 'launch_codes cuda:0 peak_mma@type=5/cuda .* peak_mma@type=8/cuda$' "$scratch/sanitized" ||
    fault "the fifth to eighth are not an item of their own"
# What racecheck does not follow has nothing that it looks at.
grep -q -e '^--tool racecheck --kernel-name-exclude kns=cb_ ' "$scratch/sanitized" || fault "racecheck follows the backend's own"
grep -q -e '^--tool memcheck .*exclude' "$scratch/sanitized" && fault "memcheck does not follow all"
grep -q __shared__ "$root/src/device/cuda/support.c" && fault "the backend's own kernels have shared memory"
expect 0 "| memcheck | peak_mma-1 | 4 | 0 | 0 |" summary
rm -rf "$out"
echo dirty >"$scratch/sanitizer"
expect 1 "sanitize: 5 found something" sanitize
rm -rf "$out"
echo wrong >"$scratch/sanitizer"
expect 1 "sanitize: 5 found something, or an output was wrong" sanitize
said "memcheck alu_chain-1: 0 errors or hazards, status 1"

# What is really listed: each code once for each tool that can see something of it, of one kernel and four at most
# together, none wrong on purpose.
listing=${program:+$(dirname "$program")/launch_codes}
if [ -n "$listing" ]; then
    rm -rf "$out" "$scratch/sanitized"
    echo "$listing" >"$scratch/real"
    echo clean >"$scratch/sanitizer"
    expect 0 "" sanitize
    for tool in racecheck memcheck; do
        sed -n "s/^--tool $tool .* cuda:0 //p" "$scratch/sanitized" | tr ' ' '\n' | sort >"$scratch/said"
        [ "$tool" = racecheck ] && seen=' shared$' || seen=.
        "$listing" -l | grep "$seen" | cut -d ' ' -f 1 | sort | cmp -s - "$scratch/said" ||
            fault "$tool is not given what is listed"
    done
    [ "$(grep '^fault_' "$scratch/said")" = fault_scale/cuda_clean ] || fault "a tool is given what is wrong on purpose"
    for kernel in gemv_q4 peak_mma scratch_read twin_read twin_write twin_copy; do
        "$listing" -l | grep -q "^$kernel[@/].* shared\$" || fault "$kernel has shared memory, and none is listed"
    done
    "$listing" -l | grep -q '^alu_chain/cuda none$' || fault "alu_chain has no shared memory"
    sed 's/.* cuda:0 //' "$scratch/sanitized" | awk '
        { kernel = $1; sub("[@/].*", "", kernel)
          for (i = 1; i <= NF; i++) if (NF > 4 || ($i != kernel && $i !~ "^" kernel "[@/]")) { print; bad = 1 } }
        END { exit bad }' >"$scratch/said" || fault "more than four, or of two kernels"
fi

# ---- a decode step: each call goes on from the records that are whole ----
cat >"$scratch/bin/decode_step" <<'END'
#!/bin/sh
verb=$1
[ "$verb" != shapes ] || exec echo --shape 64x256
while [ "$1" != --json ]; do shift; done
printf '{\n  "complete": true\n}\n' >"$2"
echo "$verb $(basename "$2")" >>"$(dirname "$0")/../steps"
END
chmod +x "$scratch/bin/decode_step"
rm -rf "$out" "$scratch/calls"
printf '%s\n' tie tie late >"$scratch/decisions"
expect 4 "decode: the time is over" decode
expect 0 "" decode
[ "$(wc -l <"$scratch/calls")" = 5 ] || fault "not four measured parts and one stopped"
[ "$(grep measure "$scratch/steps" | tr '\n' ' ')" = "measure step-1.json measure step-2.json measure step-3.json " ] ||
    fault "steps: $(cat "$scratch/steps")"
steps=$(wc -l <"$scratch/steps")
expect 0 "" decode
[ "$(wc -l <"$scratch/steps")" = "$steps" ] || fault "a decode step that is there is taken again"
rm -f "$scratch/decisions"

# ---- do_bench ----
expect 4 "0 of 6 pairs" dobench --count 6 --minutes 0
expect 0 "4 of 4 pairs" dobench --count 4
printf '{"op": "gemv' >>"$out/dobench.jsonl"
expect 0 "6 of 6 pairs" dobench --count 6
[ "$(grep -c '}$' "$out/dobench.jsonl")" = 6 ] || fault "not six pairs are kept"
expect 0 "| **all** | 6 | 5 | 0.980 to 1.020 |" summary
echo 'raise ImportError("none")' >"$scratch/python/torch.py"
expect 3 "gpu.sh: dobench: none" dobench --count 9

# ---- records that cannot be read: named in a line each, the others are shown ----
# records STATUS ARGUMENTS...: gpu_records.py ends so; its words of faults are in $scratch/faults.
records() {
    want=$1
    shift
    python3 "$root/scripts/gpu_records.py" "$@" >"$scratch/said" 2>"$scratch/faults"
    got=$?
    cat "$scratch/faults" >>"$scratch/said"
    [ "$got" = "$want" ] || fault "gpu_records.py $*: status $got, not $want"
    ! grep -q Traceback "$scratch/faults" || fault "gpu_records.py $*: a traceback"
}
records 2
said "gpu_records.py summary DIR"
records 2 summary
records 2 summary "$scratch" nothing
records 2 tables "$scratch"
records 2 line "$scratch/none" fact
records 5 line "$scratch/none" n=1
records 5 summary "$scratch/none"
said "none"
rm -rf "$out"
mkdir "$out"
one() { printf '{"tool":"memcheck","item":"%s","variants":"a b","found":0,"status":0}\n' "$1"; }
{
    one first
    printf '{"tool":"memch\n\n[1]\n{"tool":"memcheck","item":"half"}\n'
    one last
    printf '{"tool":"me'
} >"$out/sanitize.jsonl"
head -c 3000 "$root/docs/results/h200/earlier/probe-1.json" >"$out/probe-1.json"
cp "$root/docs/results/h200/earlier/probe-2.json" "$out/"
echo '{"schema": "coldbench/1"}' >"$out/run-bf16-1.json"
records 5 summary "$out"
said "| memcheck | first | 2 | 0 | 0 |"
said "| memcheck | last | 2 | 0 | 0 |"
said "| read ceiling, GB/s | 4683 [4678, 4696] |"
for place in sanitize.jsonl:2 sanitize.jsonl:3 sanitize.jsonl:4 sanitize.jsonl:5 probe-1.json run-bf16-1.json; do
    [ "$(grep -c "^gpu_records: $out/$place: ." "$scratch/faults")" = 1 ] || fault "nothing names $place, or not once"
done
[ "$(wc -l <"$scratch/faults")" = 6 ] || fault "not a line each"
expect 5 "sanitize.jsonl:2" summary
records 0 summary "$out" dobench

# ---- the page has the figures of its records ----
records 0 summary "$root/docs/results/h200"
cmp -s "$scratch/said" "$root/docs/results/h200/summary.md" ||
    fault "docs/results/h200/summary.md is not what gpu.sh summary says of its folder"

# ---- records as they are ----
[ -n "$program" ] || exit $failed
rm -rf "$out"
expect 0 "planted: alu_chain+1% 1 of 1: status 0" planted --count 1 --coldbench "$program" --device fake
"$program" run gemv_q4@act=bf16 --shape 256x256 --shape 1024x256 --budget 2 --submit batched \
    --cache cold -q --device fake:noise=0,llc=64KiB --json "$out/run-bf16-1.json" >"$scratch/said" 2>&1 || fault "coldbench run failed"
cp "$root/docs/results/h200/earlier/probe-1.json" "$out/"
expect 0 "1 comparisons: 0 called different" summary
said "| bf16 | 1 | cold | 0.20 | 38 |"
said "| read ceiling, GB/s | 4682 [4675, 4688] |"
said "| 128: 7.99, 144: 1.00, 256: 7.98, 272: 1.00, 512: 7.98, 528: 1.00 |"
PYTHONPATH="$root/scripts" PYTHONDONTWRITEBYTECODE=1 python3 - "$out"/whole/planted-*-1.json.gz <<'END' || fault "theta is another one than coldbench's"
import gpu_records, gzip, json, sys
result = json.load(gzip.open(sys.argv[1]))["results"][0]
for samples, order, said in zip(result["samples_ns"], result["order"], result["thetas"]):
    assert abs(gpu_records.theta(samples, order) - said["theta_aa2"]) < 1e-12
assert len(result["samples_ns"]) >= 6
END
exit $failed
