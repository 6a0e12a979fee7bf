"""Records nock/library.json and nock/library-raw.json with nock: `NODE_PATH=…/node_modules python make_nock.py`.

Needs node, and nock 13 (`npm install nock@13`) where NODE_PATH says.
"""

import subprocess
from pathlib import Path

import service

HERE = Path(__file__).parent / "nock"
RECORD = """
const nock = require('nock');
const http = require('http');
const fs = require('fs');
const [base, out, withHeaders] = [process.argv[1], process.argv[2], process.argv[3] === 'true'];
nock.recorder.rec({output_objects: true, dont_print: true, enable_reqheaders_recording: withHeaders});
const ask = (method, path, body, headers = {}) => new Promise((done, failed) => {
  if (body !== undefined) headers['Content-Length'] = Buffer.byteLength(body);
  headers['Accept-Encoding'] = 'gzip';
  headers['Authorization'] = 'Bearer tok-example-6d5e4f3a2b1c0d9e';
  const request = http.request(base + path, {method, headers}, (answer) => {
    answer.on('data', () => {});
    answer.on('end', done);
  });
  request.on('error', failed);
  request.end(body);
});
(async () => {
  for (let number = 1; number <= 6; number++) await ask('GET', `/books/${number}`);
  const paths = ['books?page=2', 'cover', 'jobs/7', 'jobs/7', 'jobs/7', 'old', 'events', 'twice', 'nothing'];
  for (const path of paths) await ask('GET', `/${path}`);
  await ask('HEAD', '/books/1');
  await ask('POST', '/loans', '{"book": 12, "who": "Zoë"}', {'Content-Type': 'application/json'});
  await ask('POST', '/orders', 'book=12&who=Zo%C3%AB', {'Content-Type': 'application/x-www-form-urlencoded'});
  await ask('PUT', '/covers/9', Buffer.from([...Array(256).keys()]), {'Content-Type': 'application/octet-stream'});
  await ask('DELETE', '/books/3');
  fs.writeFileSync(out, JSON.stringify(nock.recorder.play(), null, 1) + '\\n');
  process.exit(0);
})();
"""


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name, with_headers in (("library.json", "true"), ("library-raw.json", "false")):
        with service.run() as base:
            subprocess.run(["node", "-e", RECORD, base, HERE / name, with_headers], check=True)
        text = (HERE / name).read_text()
        host = base.removeprefix("http://")
        (HERE / name).write_text(text.replace(base, "http://library.test:80").replace(host, "library.test"))


if __name__ == "__main__":
    main()
