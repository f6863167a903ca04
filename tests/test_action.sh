#!/bin/sh
# test_action.sh ROOT COLDBENCH: the action of contrib/github-action is YAML, names only options that exist, and
# only inputs that it declares, all of which its README explains. Then seeds one of each fault.
set -u

program=${2:-}
if [ -z "$program" ]; then
    echo "no program to ask" >&2
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
folder=$1/contrib/github-action
failed=0
options() { grep -oE -e '(^|[ "])--[a-z][a-z-]*' | tr -d ' "' | sort -u; }
"$program" gate --help | options >"$scratch/known"

# check ACTION README: prints what is wrong.
check() {
    # The command line of the gate: its line and those it goes on in.
    awk '/coldbench" gate / { on = 1 } on { print } on && !/\\$/ { on = 0 }' "$1" | options >"$scratch/used"
    grep -qx -e --base "$scratch/used" || echo "no call of coldbench gate"
    awk '/More options of coldbench gate/' "$1" | options >>"$scratch/used"
    awk '/options: --/' "$2" | options >>"$scratch/used"
    while read -r option; do
        grep -qx -e "$option" "$scratch/known" || echo "coldbench gate has no option $option"
    done <"$scratch/used"
    sed -n '/^inputs:/,/^runs:/s/^  \([a-z-]*\):.*/\1/p' "$1" >"$scratch/inputs"
    grep -oE 'inputs\.[a-z-]+' "$1" | sed 's/inputs\.//' | while read -r input; do
        grep -qx "$input" "$scratch/inputs" || echo "input $input is not declared"
    done
    while read -r input; do
        grep -q "inputs\.$input " "$1" || echo "input $input is not used"
        grep -q "^| \`$input\` |" "$2" || echo "input $input is not explained"
    done <"$scratch/inputs"
}

found=$(check "$folder/action.yml" "$folder/README.md")
[ -z "$found" ] || { echo "$found" && failed=1; }

# seeded SED WORDS: the action with that edit is accused, with those words.
seeded() {
    sed "$1" "$folder/action.yml" >"$scratch/action.yml"
    found=$(check "$scratch/action.yml" "$folder/README.md")
    case $found in
    *"$2"*) ;;
    *) echo "seeded $1: expected '$2', found '$found'" && failed=1 ;;
    esac
}
seeded 's/--markdown/--markdwon/' "no option --markdwon"
seeded 's/ gate --base/ gtae --base/' "no call of coldbench gate"
seeded 's/inputs\.artifact/inputs.artefact/' "input artefact is not declared"
seeded 's/^  packages:/  parcels:/' "input parcels is not explained"

if ! python3 -c 'import yaml' 2>/dev/null; then
    [ "$failed" = 0 ] || exit 1
    echo "whether action.yml is YAML is not looked at: python3 has no yaml" >&2
    exit 77
fi
cat >"$scratch/read.py" <<'EOF'
import sys, yaml
action = yaml.safe_load(open(sys.argv[1]))
steps = action["runs"]["steps"]
assert action["runs"]["using"] == "composite" and all(s["shell"] == "bash" and s["run"] for s in steps)
for n, step in enumerate(steps):
    open(f"{sys.argv[2]}/step{n}.sh", "w").write(step["run"])
EOF
python3 "$scratch/read.py" "$folder/action.yml" "$scratch" || failed=1
for step in "$scratch"/step*.sh; do
    [ -e "$step" ] || continue
    ! command -v bash >/dev/null || bash -n "$step" || failed=1
done
sed 's/^runs:/runs/' "$folder/action.yml" >"$scratch/action.yml"
python3 "$scratch/read.py" "$scratch/action.yml" "$scratch" 2>/dev/null && echo "seeded: no YAML, not found" && failed=1
exit $failed
