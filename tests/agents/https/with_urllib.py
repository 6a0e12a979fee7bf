"""The standard library's client, which believes the proxy variables."""

import urllib.request

print(urllib.request.urlopen("https://api.example.com/items/1").read().decode())
