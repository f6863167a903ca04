#!/bin/sh
# test_docs.sh ROOT [COLDBENCH]: what README, CONTRIBUTING, CHANGELOG and docs/ name exists: commands and
# options (asked of the program), make targets, presets, files, links. Then seeds one of each that does not.
#
# Read are `code spans`, and in fenced blocks the lines that start with a command, "$ " before it or not.
# Words in capitals (NAME, FILE) and "..." stand for something; * is a pattern that something must match.
set -u

# snippets FILE: the code of a page, one "line number, kind, text" a line; kind is code or link.
snippets() {
    awk '
    /^ *```/ { fenced = !fenced; next }
    fenced {
        text = $0
        sub(/^ *(\$ )?/, "", text)
        if (text ~ /^(([^ ]*\/)?coldbench|make|cmake|ctest) /) print NR, "code", text
        next
    }
    {
        rest = $0
        while (match(rest, /`[^`]+`/)) {
            print NR, "code", substr(rest, RSTART + 1, RLENGTH - 2)
            rest = substr(rest, RSTART + RLENGTH)
        }
        rest = $0
        gsub(/`[^`]+`/, "", rest)
        while (match(rest, /\]\([^) ]+\)/)) {
            print NR, "link", substr(rest, RSTART + 2, RLENGTH - 3)
            rest = substr(rest, RSTART + RLENGTH)
        }
    }' "$1"
}

fault() {
    printf '%s:%s: %s: %s\n' "$page" "$number" "$text" "$*"
}

# options_of VERB: the options in its help, one a line, asked once. Status 1: no such verb.
options_of() {
    if [ ! -e "$scratch/help.$1" ]; then
        if "$program" "$1" --help >"$scratch/out" 2>&1; then
            grep -oE -e '--[a-z][a-z0-9-]*' "$scratch/out" | sort -u >"$scratch/help.$1"
        else
            echo none >"$scratch/help.$1"
        fi
    fi
    [ "$(cat "$scratch/help.$1")" != none ] && cat "$scratch/help.$1"
}

all_options() {
    if [ ! -e "$scratch/options" ]; then
        "$program" --help 2>&1 | grep -oE '^ +[a-z]+' | tr -d ' ' | sort -u >"$scratch/verbs"
        {
            "$program" --help 2>&1 | grep -oE -e '--[a-z][a-z0-9-]*'
            while read -r verb; do options_of "$verb"; done <"$scratch/verbs"
        } | sort -u >"$scratch/options"
    fi
    cat "$scratch/options"
}

# known_options LIST: each --option of the text is in it.
known_options() {
    for word in $(printf '%s\n' "$text" | grep -oE -e '(^|[^a-zA-Z0-9-])--[a-z][a-z0-9-]*' |
        grep -oE -e '--.*'); do
        printf '%s\n' "$1" | grep -qx -e "$word" || fault "no option $word"
    done
}

command_line() {
    [ -n "$program" ] || return
    verb=$(printf '%s\n' "$text" | sed 's/^[^ ]* *//; s/ .*//')
    case $verb in
    --help | --version | help | '' | [A-Z]* | ...) return ;;
    -*) fault "no verb before $verb" ;;
    *) if list=$(options_of "$verb"); then known_options "$list"; else fault "no verb $verb"; fi ;;
    esac
}

preset() {
    grep -q "\"name\": \"$1\"" CMakePresets.json || fault "no preset $1"
}

make_targets() {
    for word in ${text#make}; do
        case $word in
        *=* | [A-Z]* | -*) ;;
        *) grep -qE "^$word:" Makefile || fault "no target $word" ;;
        esac
    done
}

cmake_presets() {
    for word in $(printf '%s\n' "$text" | grep -oE -e '--preset[= ][a-zA-Z]+' | sed 's/.*[= ]//'); do
        case $word in [A-Z]*) ;; *) preset "$word" ;; esac
    done
}

# A path starts with a folder of the tree, or is a page; what is built is no file of the tree.
path() {
    start=${text%%/*}
    case $text in
    build/[a-z]*/*) name=${text#build/} && preset "${name%%/*}" && return ;;
    build/*) return ;;
    */*) [ -d "$start" ] || return ;;
    *.md) ;;
    *) return ;;
    esac
    pattern=$(printf '%s\n' "$text" | sed 's/[A-Z][A-Z]*\([^A-Za-z]\)/*\1/g; s/[A-Z][A-Z]*$/*/')
    case $text in *.md) pattern=$text ;; esac
    # shellcheck disable=SC2086 # the pattern is to match
    ls -d $pattern >/dev/null 2>&1 || fault "no such file"
}

link() {
    case $text in *://* | '#'* | mailto:*) return ;; esac
    [ -e "$(dirname "$page")/${text%%#*}" ] || fault "the link leads nowhere"
}

# check ROOT: prints what is named and does not exist, as page:line: text: what.
check() (
    cd "$1" || exit
    number=0
    text=README.md
    page=README.md
    [ -e README.md ] || { git cat-file -e HEAD:README.md 2>/dev/null && fault "the page is gone"; }
    for page in README.md CONTRIBUTING.md CHANGELOG.md $(find docs -name '*.md' 2>/dev/null); do
        [ -e "$page" ] || continue
        snippets "$page" | while read -r number kind text; do
            case $kind,$text in
            link,*) link ;;
            code,coldbench\ * | code,build/*/coldbench\ *) command_line ;;
            code,make\ *) make_targets ;;
            code,cmake\ * | code,ctest\ *) cmake_presets ;;
            code,--[a-z]*) [ -z "$program" ] || known_options "$(all_options)" ;;
            code,*\ * | code,*://* | code,/* | code,~*) ;;
            code,*) path ;;
            esac
        done
    done
)

# seeded TEXT WORDS: a page with that text is accused, with those words; without it it is not.
seeded() {
    printf '%s\n' "$1" >"$copy/README.md"
    found=$(check "$copy")
    case $found in
    *"$2"*) ;;
    *) printf 'seeded "%s", expected "%s", found "%s"\n' "$1" "$2" "$found" && failed=1 ;;
    esac
}

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
program=${2:-}
found=$(check "$1")
[ -z "$found" ] || { printf '%s\n' "$found" && failed=1; }

# selftest_parts PAGE: what a selftest prints (its tables, by their first two words) is in the page's example of
# it, and the record named there holds the comparisons too. Prints what is missing.
selftest_parts() {
    sed -n '/^\$ coldbench selftest/,/^```/p' "$1" >"$scratch/example"
    "$program" selftest --runs 1 --seed 7 --device fake:llc=256KiB,cache_gbs=4,dram_gbs=1,cache_ns=20,dram_ns=400 \
        >"$scratch/out" 2>/dev/null || echo "selftest fails"
    awk 'blank && /^[a-z]/ { print $1, $2 } { blank = !NF }' "$scratch/out" | while read -r part; do
        grep -q "^$part" "$scratch/example" || echo "the example of selftest has no '$part'"
    done
}
if [ -n "$program" ]; then
    found=$(selftest_parts "$1/README.md")
    [ -z "$found" ] || { printf 'README.md: %s\n' "$found" && failed=1; }
    record=$1/$(grep -oE 'docs/results/records/selftest-[a-z0-9-]+\.json' "$1/README.md" | head -n 1)
    for part in aa planted faults timer; do
        grep -qE "^  \"$part\": [{[]\$" "$record" || { echo "$record has no $part" && failed=1; }
    done
    printf '$ coldbench selftest\ntimer\n\nseeded fault\n```\n' >"$scratch/page"
    [ -n "$(selftest_parts "$scratch/page")" ] || { echo "an example of selftest without tables passes" && failed=1; }
fi

# The seeded tree has its own program, of one verb and one option.
rm -f "$scratch"/help.* "$scratch/options"
copy=$scratch/tree
mkdir -p "$copy/src" "$copy/docs"
echo >"$copy/src/one.c"
echo 'demo:' >"$copy/Makefile"
echo '{ "name": "dev" }' >"$copy/CMakePresets.json"
program=$scratch/program
cat >"$program" <<'EOF'
#!/bin/sh
case $* in --help) echo '  run  does --help' ;; 'run --help') echo '  --json FILE' ;; *) exit 2 ;; esac
EOF
chmod +x "$program"
cat >"$copy/README.md" <<'EOF'
`coldbench run x --json -`, `--json FILE`, `make demo`, `cmake --preset dev`, `src/one.c`, `src/*.c`, [one](src/one.c),
`src/NAME.c`, `build/dev/coldbench run x`, `build/dev/x`, `x --odd`, `cmake --preset NAME`, `coldbench --help`, `and/or`
```
$ coldbench run x --json -
words of output, --odd among them
```
EOF
found=$(check "$copy")
[ -z "$found" ] || { printf 'a clean page is accused: %s\n' "$found" && failed=1; }
seeded '`coldbench walk x`' "no verb walk"
seeded '`coldbench run x --jsn -`' "no option --jsn"
seeded '`--jsn`' "no option --jsn"
seeded '`make tea`' "no target tea"
seeded '`ctest --preset fast`' "no preset fast"
seeded '`build/fast/coldbench`' "no preset fast"
seeded '`src/two.c`' "no such file"
seeded '`src/*.h`' "no such file"
seeded '`GONE.md`' "no such file"
seeded '[two](src/two.c)' "the link leads nowhere"
seeded "$(printf '```\n$ coldbench walk x\n```')" "no verb walk"
[ $failed -eq 0 ] && [ -z "${2:-}" ] && exit 77
exit $failed
