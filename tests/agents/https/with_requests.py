import requests

session = requests.Session()
assert session.post("https://api.example.com/items", json={"n": 1, "name": "cup"}).status_code == 201
assert session.delete("https://api.example.com/items/1").status_code == 204
assert session.head("https://api.example.com/items/1").headers["content-length"] == "13"
assert session.get("https://api.example.com/old").history[0].status_code == 302
assert len(session.get("https://api.example.com/large").content) == 1 << 20
print(session.get("https://api.example.com/items/1").text)
