#!/bin/sh
# Texts for readers have none of the wrong words that tools/check-words lists, and it finds each: words_test.sh ROOT
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check() {
    printf '%b\n' "$2" >"$folder/$1"
    if "$ROOT/tools/check-words" "$folder/$1" >"$folder/out"; then clean=yes; else clean=no; fi
    [ "$clean" = "$3" ] || { echo "$1: '$2' is clean: $clean, not $3"; cat "$folder/out"; exit 1; }
}
ROOT=$1
check page.md 'It takes +- 3 us.' no
check page.md 'It has no plan any more.' no
check page.md 'It is 1 times as fast.' no
check page.md 'It moves 4 times fewer bytes.' no
check page.md '`--json` does not go with `--csv`.' no
check page.md 'The time is told below.' no
check page.md 'The figure stands in the table.' no
check page.md 'The figure lies above.' no
check page.md 'Problems stand apart.' no
check page.md 'N stands for a number, and stand-ins for drivers.' yes
check page.md 'Of a GEMM the numbers are small.' no
check page.md 'It is so. Of pairs half are stored.' no
check page.md 'Of 66 chains 2 are ahead, and of course all ran.' yes
check page.md 'A kernel behind the product reads it.' no
check page.md 'It falls behind, and hides behind the loads.' yes
check page.md 'It is timed beside cuBLASLt.' no
check page.md 'The softmax runs beside the product.' no
check page.md 'It prints `+- 3 us`.' yes
check page.md '> The figure stands in the table.' yes
check page.md '```\nThe figure stands in the table.\n```' yes
check page.md '<!-- words: quoted -->\nThe figure stands in the table.' yes
check page.md 'The figure is in the table, 679 us ± 8 %.' yes
check text.cpp 'say("the figure stands in the table");' no
check text.cpp '{"seed", "N", "Of what is drawn"},' no
check text.cpp 'stands(in); // stands in the table' yes
check head.hpp '/// It stands in the table.' no
"$ROOT/tools/check-words"
