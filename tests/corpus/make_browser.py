"""Records browser/library.har with Chromium, driven by Playwright: `python make_browser.py [CHROMIUM]`.

Needs playwright, in an environment of its own, and a Chromium.
"""

import json
import sys
from pathlib import Path

import service
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent / "browser"
SCRIPT = """async () => {
  const take = async (path, options) => (await fetch(path, options)).text();
  for (let n = 1; n <= 190; n++) await take(`/books/${n}`);
  for (const page of [1, 2]) await take(`/books?page=${page}&q=${encodeURIComponent('Der Prozeß')}`);
  for (let n = 0; n < 4; n++) await take('/jobs/7');
  for (const path of ['/cover', '/old', '/events', '/latin', '/twice', '/nothing/here']) await take(path);
  await take('/books/1', {method: 'HEAD'});
  await take('/books/3', {method: 'DELETE'});
  for (let n = 0; n < 2; n++)
    await take('/loans', {method: 'POST', headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({book: 12, who: 'Zoë', request_id: crypto.randomUUID()})});
  await take('/search', {method: 'POST', body: new URLSearchParams({q: 'größe & mehr', n: '3'})});
  await take('/raw', {method: 'PUT', body: new Uint8Array([...Array(256).keys()])});
}"""


def main() -> None:
    HERE.mkdir(exist_ok=True)
    path = HERE / "library.har"
    with service.run() as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=sys.argv[1] if len(sys.argv) > 1 else "/usr/bin/chromium", args=["--no-sandbox"]
        )
        context = browser.new_context(record_har_path=str(path), record_har_content="embed")
        page = context.new_page()
        page.goto(f"{base}/books/1")
        page.evaluate(SCRIPT)
        context.close()
        browser.close()
    document = json.loads(path.read_text().replace(base.removeprefix("http://"), "library.test"))
    path.write_text(
        json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    )  # without the blanks that indent it


if __name__ == "__main__":
    main()
