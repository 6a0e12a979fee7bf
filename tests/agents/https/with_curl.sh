#!/bin/sh
# Writes over the proxy that its variables name, then reads by the host's own ports.
set -e
curl -sSf https://api.example.com/items -H 'content-type: application/json' -d '{"n": 1, "name": "cup"}' >&2
curl -sSf -X DELETE https://api.example.com/items/1
curl -sSfI https://api.example.com/items/1 >&2
curl -sSfL http://api.example.com/old >&2
curl -sSf --http1.1 --noproxy '*' https://api.example.com/large -o large
curl -sSf --http2 --noproxy '*' https://api.example.com/large -o large2
cmp large large2
test "$(curl -sS -o /dev/null -w '%{http_code}' https://api.example.com/cached)" = 304
test "$(curl -sSf https://api.example.com/stream)" = 'data: 1data: 2'
test "$(curl -sS -o /dev/null -w '%{http_version}' --noproxy '*' https://api.example.com/items/1)" = 2
head -c 2000000 /dev/zero | tr '\0' 0 >long
for version in 1.1 2; do
    curl -sSf --http$version -H 'Expect: 100-continue' -H 'content-type: text/plain' --data-binary @long https://api.example.com/upload >&2
done
curl -sSf --noproxy '*' https://api.example.com/items/1
