# For scripts that fit one number of a machine to a recorded run: sourced by them.

# least_error FILE VALUES [WORDS]: tells, with WORDS ("of") before the file, the error of each value and leaves the one with the least in `best`. The script has
# error_of FILE VALUE, which prints the error in percent; mean_error() reads it out of what `report sweep --json` prints.
mean_error() { sed -n '/"prediction_error"/,/}/s/.*"mean": *\([0-9.e-]*\).*/\1/p' | head -1 | awk '{ printf "%.2f\n", 100 * $1 }'; }

least_error() {
    best= least=1000
    for value in $2; do
        off=$(error_of "$1" "$value")
        echo "$value: $off % ${3:-of} $(basename "$1")"
        if awk "BEGIN { exit !($off < $least) }"; then best=$value least=$off; fi
    done
    echo "best: $best"
}
