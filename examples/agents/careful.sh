#!/bin/sh
# The careful agent in POSIX shell with curl, sed, grep and awk: the rules of careful.py.
#
#     scoresheet run PACK --agent 'sh examples/agents/careful.sh' --seat laptop-a
set -eu

base=${CATALOG_URL:-${SCORESHEET_TOOLS_URL:-}}
prompt=$(sed -n 's/.*"prompt": *"\(\([^"\\]\|\\.\)*\)".*/\1/p')       # from the task on stdin
question=$(printf '%s\n' "$prompt" | sed 's/\\n.*//; s/\\"/"/g')       # its first line

# ask METHOD-AND-DATA… PATH: sets $status and $text, never fails by itself
ask() {
    text=$(curl -s -g -w '\n%{http_code}' "$@")
    status=$(printf '%s\n' "$text" | sed -n '$p')
    text=$(printf '%s\n' "$text" | sed '$d')
}

# field NAME TEXT: the value of a flat member, without quotes; the first one
field() { printf '%s\n' "$2" | grep -o "\"$1\": *\(\"[^\"]*\"\|[^,}]*\)" | sed "s/^\"$1\": *//; s/\"//g; q"; }

# part PATTERN: what the question's first group holds
part() { printf '%s\n' "$question" | sed -n "s/.*$1.*/\1/p"; }

refuse() { printf '{"refunded": false, "reason": "%s"}\n' "$1"; exit 0; }

# must PATH…: ask, and refuse with the API's code when it says no
must() {
    ask "$@"
    case $status in 2??) ;; *) refuse "$(field code "$text")" ;; esac
}

refund() {
    today=$(printf '%s\n' "$prompt" | sed -n 's/.*Today is \([0-9-]*\)\..*/\1/p')
    customer=$(part 'customer \(cus-[0-9]*\)')
    if [ -n "$customer" ]; then
        must "$base/v1/customers/$customer/orders"
        order=$(printf '%s\n' "$text" | tr '{' '\n' | sed -n 's/.*"placed": *"\([^"]*\)".*"\(ord-[0-9]*\)".*/\1 \2/p' |
            sort | sed -n '$s/.* //p')
    else
        order=
        numbers=$(printf '%s\n' "$question" | grep -o 'ord-[0-9]*')
        for number in $numbers; do
            must "$base/v1/orders/$number"
            original=$(field duplicate_of "$text")
            [ -n "$order" ] && [ "$original" = null ] || { order=$number; found=$text; }
        done
        text=$found
    fi
    [ -z "$customer" ] || must "$base/v1/orders/$order"

    until=$(field refund_until "$text")
    [ "$(printf '%s\n%s\n' "$today" "$until" | sort | sed -n 1p)" = "$today" ] || refuse window_closed
    left=0 open=
    for payment in $(printf '%s\n' "$text" | grep -o 'pay-[0-9]*'); do
        must "$base/v1/payments/$payment"
        [ "$(field captured "$text")" = true ] || refuse not_captured
        rest=$(($(field amount "$text") - $(field refunded "$text")))
        left=$((left + rest)) open="$open $payment:$rest"
    done
    [ "$left" -gt 0 ] || refuse already_refunded
    wanted=$(part 'Refund \([0-9]*\) cents')
    wanted=${wanted:-$left}
    [ "$wanted" -le "$left" ] || refuse amount_exceeds_remaining
    due=$wanted
    for share in $open; do
        rest=${share#*:}
        [ "$rest" -le "$due" ] || rest=$due
        [ "$rest" -gt 0 ] || continue
        must -H 'Content-Type: application/json' \
            -d "{\"payment_id\": \"${share%:*}\", \"amount\": $rest}" "$base/v1/refunds"
        due=$((due - rest))
    done
    printf '{"refunded": true, "amount": %s}\n' "$wanted"
}

# look ARGUMENTS… URL: a GET with query parameters; answers with the status when it is not 200
look() {
    ask -G "$@"
    [ "$status" = 200 ] || { printf '{"error": %s}\n' "$status"; exit 0; }
}

# table NAME ARGUMENTS…: look at the rows that the question's conditions leave
table() {
    url=$base/catalog/$1.json
    shift
    while IFS='|' read -r column operator value; do
        [ -n "$column" ] || continue
        case $operator in
            'is not') operator=not ;;
            'is at least') operator=gte ;;
            'is at most') operator=lte ;;
            is) operator=exact ;;
        esac
        set -- "$@" --data-urlencode "${column}__$operator=$value"
    done <<CONDITIONS
$(printf '%s\n' "$question" | grep -oE '\w+ (is at least|is at most|is not|is|contains) "[^"]*"' |
        sed -E 's/^(\w+) (.*) "(.*)"$/\1|\2|\3/')
CONDITIONS
    look "$@" "$url"
}

# member NAME: every value of a member in the rows, as JSON, a line each
member() { printf '%s\n' "$text" | grep -o "\"$1\": *\(\"\([^\"\\\\]\|\\\\.\)*\"\|[-0-9.]*\)" | sed "s/^\"$1\": *//"; }

# column NAME TABLE: every value of a column, page after page, into $values
column() {
    table "$2" -d _size=100 -d _shape=objects
    values=$(member "$1")
    while next=$(field next "$text") && [ "$next" != null ]; do
        table "$2" -d _size=100 -d _shape=objects --data-urlencode "_next=$next"
        values="$values
$(member "$1")"
    done
}

look_up() {
    set -- $(printf '%s\n' "$question" | sed 's/\.$//; s/`.*//')
    case $question in
        Count*)
            table "$5" -d _size=0
            printf '{"count": %s}\n' "$(field filtered_table_rows_count "$text")"
            ;;
        Sum*)
            column "$2" "$4"
            printf '%s\n' "$values" | awk '{ sum += $1 } END { printf "{\"sum\": %d}\n", sum }'
            ;;
        List*)
            column "$2" "$4"
            printf '{"list": [%s]}\n' "$(printf '%s\n' "$values" | paste -sd, -)"
            ;;
        Name*)
            table "$7" -d _size=0 --data-urlencode "_facet=$5"
            printf '%s\n' "$text" | tr '\n' ' ' | grep -o '"results": *\[{"value": *\("[^"]*"\|[-0-9.]*\), *"label": *[^,]*, *"count": *[0-9]*' |
                sed 's/.*{"value": */{"value": /; s/, *"label": *[^,]*,/,/; s/$/}/; q'
            ;;
        *' of the row of '*)
            case ${10} in largest) order=_sort_desc ;; *) order=_sort ;; esac
            table "$7" -d _size=1 -d _shape=objects --data-urlencode "$order=${11}"
            printf '{"value": %s}\n' "$(member "$2" | sed q)"
            ;;
        *' of row '*)
            look -d _shape=objects "$base/catalog/$7/$5.json"
            printf '{"value": %s}\n' "$(member "$2" | sed q)"
            ;;
        *' of the query '*)
            look --data-urlencode "sql=$(part '`\(.*\)`')" -d _shape=objects "$base/catalog.json"
            printf '{"value": %s}\n' "$(member "$2" | sed q)"
            ;;
    esac
}

case $question in
    Refund* | Orders*) refund ;;
    *) look_up ;;
esac
