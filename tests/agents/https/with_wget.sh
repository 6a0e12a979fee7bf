#!/bin/sh
set -e
wget -q -O- https://api.example.com/items/1 >&2
exec env -u HTTPS_PROXY -u https_proxy wget -q -O- https://api.example.com/items/1
