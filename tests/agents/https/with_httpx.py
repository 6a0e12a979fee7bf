import httpx

with httpx.Client(http2=True) as by_proxy, httpx.Client(transport=httpx.HTTPTransport(http2=True)) as direct:
    for client in (by_proxy, direct):
        assert client.post("https://api.example.com/items", json={"n": 1, "name": "cup"}).status_code == 201
        assert client.delete("https://api.example.com/items/1").status_code == 204
        assert client.get("https://api.example.com/stream").text == "data: 1data: 2"
        assert len(client.get("https://api.example.com/large").content) == 1 << 20
        found = client.get("https://api.example.com/items/1")
        assert found.http_version == "HTTP/2"
print(found.text)
