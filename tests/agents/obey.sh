#!/bin/sh
# An agent that does what its prompt says: `BEHAVIOUR [ARGUMENT]`. Each behaviour is one way of being an agent.
order=$(sed -n 's/^ "prompt": "\(.*\)",$/\1/p')
behaviour=${order%% *}
argument=${order#* }
right='{"price": 12}'
ask() { curl -s -S "$@"; }
linger() { [ "$argument" = "$order" ] || sleep "$argument"; }
case $behaviour in
careful) ask "$SCORESHEET_TOOLS_URL/items/1" ;;
by_name) ask "$SCORESHEET_CALL_URL/get_item" -d '{"n": 1}' ;;
named_upstream) ask "$SHOP/items/1" ;;
file) printf %s "$right" >"$SCORESHEET_ANSWER"; echo '{"price": 0}' ;;
broken_file) printf '{"price": 12' >"$SCORESHEET_ANSWER"; echo "$right" ;;
submits)
    ask "$SCORESHEET_CALL_URL/submit_answer" -d '{"price": 0}'
    ask "$SCORESHEET_CALL_URL/submit_answer" -d "$right"
    echo '{"price": 0}'
    ;;
submits_nonsense) ask "$SCORESHEET_CALL_URL/submit_answer" -d 'nonsense'; echo "$right" ;;
talks) echo '{"price": 0}'; echo "$right"; echo; echo ;;
silent) ;;
wrong) echo '{"price": 12.5}' ;;
twice) ask "$SCORESHEET_TOOLS_URL/items/1"; echo; ask "$SCORESHEET_TOOLS_URL/items/1" ;;
guesser) ask "$SCORESHEET_TOOLS_URL/items/7"; echo; linger; echo "$right" ;;
sloppy) ask "$SCORESHEET_TOOLS_URL/items/0"; echo; echo "$right" ;;
greedy) for _ in 1 2 3 4 5 6; do ask "$SCORESHEET_TOOLS_URL/items/1"; done; linger; echo; echo "$right" ;;
network) ask -m 2 "$argument" >/dev/null && echo '{"price": 12, "reached": true}' || echo "$right" ;;
floods) yes >&2 ;;
never) sleep "$argument" ;;
stubborn) trap '' TERM INT HUP; while :; do sleep "$argument"; done ;;
daemons)
    (setsid sh -c "trap '' TERM; sleep $argument" >/dev/null 2>&1 &)
    setsid sleep "$argument" >/dev/null 2>&1 &
    echo "$right"
    ;;
fills) echo "$right"; dd if=/dev/zero of=big bs=1M count=64 && sleep 20 ;;
dies) echo "$right"; kill -SEGV $$ ;;
quits) echo "$right"; exit 3 ;;
waits) sleep "$argument"; echo "$right" ;;
environment) env | sort >&2; echo "$right" ;;
*) echo "no behaviour $behaviour" >&2; exit 2 ;;
esac
