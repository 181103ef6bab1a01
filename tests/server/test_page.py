"""The page in a real browser: Debian's chromium, driven by Selenium. Elsewhere these tests are skipped."""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from live_server import live_server

EXAMPLE = "#example=support-en"
VIEWS = ["matrix", "pairs", "clusters", "search", "layers", "explain"]
INSIDE = "about:", "blob:", "chrome", "data:"  # not requests to another machine; chrome: is the browser's new tab
SEARCH = f"{EXAMPLE}&view=search&query=How%20do%20I%20get%20my%20money%20back%3F"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--window-size=1280,900",
]  # fmt: skip

FRESH = "localStorage.clear(); sessionStorage.clear(); if ('LANGUAGE') localStorage['twinvec-language'] = 'LANGUAGE'"
CHOOSE_B = (
    "const b = document.querySelectorAll('#controls select')[1]; b.value = 2; b.dispatchEvent(new Event('change'))"
)
NAMES = "return import('/page/words.js').then(({ WORDS }) => Object.values(WORDS).map(words => Object.keys(words)))"
RUN_AXE = "axe.run(document, { resultTypes: ['violations'] }).then(found => arguments[0](found.violations))"


def skip_or_fail(reason):
    """Skip; where the browser is required, as in CI, fail."""
    if os.environ.get("TWINVEC_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """A browser with the page open."""

    def __init__(self, driver, url, downloads):
        self.driver, self.url, self.downloads = driver, url, downloads

    def open(self, fragment="", *, language="en", dark=False):
        """Load the page anew, with a state in its address."""
        value = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get("about:blank")
        script = {"source": FRESH.replace("LANGUAGE", language)}
        added = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
        self.driver.get(f"{self.url}/{fragment}")
        self.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        self.wait("return document.querySelectorAll('#tabs button').length === 6")

    def script(self, code, *values):
        return self.driver.execute_script(code, *values)

    def wait(self, code, *values):
        """Wait until a script returns something true, and return it."""
        deadline = time.monotonic() + 60
        while not (found := self.script(code, *values)):
            assert time.monotonic() < deadline, f"{code}\n{self.text('#panel')}"
            time.sleep(0.02)
        return found

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def texts(self, selector):
        return self.script("return [...document.querySelectorAll(arguments[0])].map(each => each.innerText)", selector)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def click(self, selector):
        self.find(selector).click()

    def wait_for_answer(self):
        """Wait until a view shows an answer of the server."""
        self.wait("return document.querySelector('#view').dataset.view")

    @contextmanager
    def screen(self, width):
        """A screen of another width; narrow ones are phones."""
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        yield
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def download(self, kind):
        """Click an export, and return the file's content."""
        before = set(self.downloads.iterdir())
        self.click(f"#export-{kind}")
        deadline = time.monotonic() + 30
        while not (new := [each for each in set(self.downloads.iterdir()) - before if each.suffix == f".{kind}"]):
            assert time.monotonic() < deadline, f"no {kind} file"
            time.sleep(0.02)
        while not (content := new[0].read_bytes()):
            time.sleep(0.02)
        new[0].unlink()
        return content

    def problems(self):
        """Errors and warnings in the console since the last call."""
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """Addresses requested since the last call."""
        events = [json.loads(each["message"])["message"] for each in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A headless chromium with a new profile."""
    binary, tool = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and tool):
        skip_or_fail("the page needs Debian's chromium and chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(tool))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page_server():
    with live_server("twinvec-mini", "static=twinvec-static") as server:
        yield server


@pytest.fixture(scope="module")
def module_browser(driver, page_server, tmp_path_factory):
    downloads = tmp_path_factory.mktemp("downloads")
    allowed = {"behavior": "allow", "downloadPath": str(downloads)}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    return Browser(driver, page_server.url, downloads)


@pytest.fixture
def browser(module_browser):
    """The browser; after each test, its console has no error, and all requests went to the server."""
    module_browser.problems(), module_browser.requests()
    yield module_browser
    assert module_browser.problems() == []
    assert [url for url in module_browser.requests() if not url.startswith((module_browser.url, *INSIDE))] == []


def test_an_example_fills_the_empty_page_and_every_view_follows_a_click(browser):
    browser.open()
    assert browser.text("h1") == "See what your sentences mean to a model"
    browser.click(".card[data-example='support-en']")
    browser.wait_for_answer()
    assert browser.text("#count") == "12 texts" and browser.text("h1") == "How similar are they?"
    for view in VIEWS:
        browser.click(f"#tab-{view}")
        browser.wait_for_answer()
        assert browser.script("return document.querySelectorAll('#view canvas, #view li').length"), view
    assert f"view={VIEWS[-1]}" in browser.driver.current_url


def test_typed_sentences_are_compared_after_a_pause(browser):
    browser.open()
    browser.find("#texts").send_keys("A cat sits.\nA kitten rests.\n\nIt rains.")
    browser.wait_for_answer()
    assert browser.text("#count") == "3 texts"
    browser.click("#tab-pairs")
    browser.wait("return document.querySelectorAll('.results li').length === 3")
    assert browser.texts(".results li .both")[0].split("\n")[0].endswith("A cat sits.")


@pytest.mark.parametrize(
    ("name", "content", "encoding"),
    [
        ("lines.txt", "고양이가 잔다.\r\nThe dog sleeps.\n\n", "utf-8"),
        ("table.csv", 'id,문장\n1,"고양이가\n잔다."\n2,The dog sleeps.\n', "euc-kr"),
        ("rows.jsonl", '{"id": "a", "text": "고양이가 잔다."}\n{"id": "b", "text": "The dog sleeps."}\n', "utf-8"),
    ],
)
def test_a_dropped_file_becomes_texts(browser, name, content, encoding):
    browser.open()
    drop = """
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(arguments[1])], arguments[0]));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    """
    browser.script(drop, name, list(content.encode(encoding)))
    browser.wait_for_answer()
    assert browser.find("#texts").get_property("value").split("\n") == ["고양이가 잔다.", "The dog sleeps."]


def test_a_file_that_is_no_text_is_named(browser, tmp_path):
    browser.open()
    (tmp_path / "broken.jsonl").write_text("{not json}")
    browser.find("#file").send_keys(str(tmp_path / "broken.jsonl"))
    browser.wait("return !document.querySelector('#problem').hidden")
    assert browser.text("#problem p") == "broken.jsonl cannot be read as text."


def test_the_link_restores_the_view_its_settings_and_its_texts(browser):
    browser.open()
    browser.find("#texts").send_keys("A cat sits.\n고양이가 앉아 있다.\nIt rains.")
    browser.wait_for_answer()
    browser.click("#tab-explain")
    browser.wait_for_answer()
    browser.script(CHOOSE_B)
    browser.wait("return location.hash.includes('b=2')")
    browser.wait_for_answer()
    link, cosine = browser.driver.current_url, browser.text(".big")
    browser.open("#" + link.partition("#")[2])
    browser.wait_for_answer()
    assert browser.text(".big") == cosine
    assert browser.find("#texts").get_property("value").split("\n") == [
        "A cat sits.",
        "고양이가 앉아 있다.",
        "It rains.",
    ]
    browser.driver.back()


def test_the_back_button_returns_to_the_view_before(browser):
    browser.open(EXAMPLE)
    browser.wait_for_answer()
    browser.click("#tab-pairs")
    browser.wait("return document.querySelector('.results')")
    browser.driver.back()
    browser.wait(
        "return document.querySelector('#tab-matrix').ariaSelected === 'true' && document.querySelector('canvas')"
    )


def test_a_damaged_link_shows_the_empty_page(browser):
    browser.open("#view=nothing&t=!!!&a=-7&b=x")
    browser.wait("return document.querySelector('.cards')")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_exported_as_csv_json_and_png(browser, view):
    browser.open(f"{SEARCH.replace('view=search', f'view={view}')}")
    browser.wait_for_answer()
    table = browser.download("csv").decode("utf-8-sig").splitlines()
    assert len(table) > 4
    assert json.loads(browser.download("json"))["texts"][0] == "Where is my package?"
    picture = browser.download("png")
    width, height = struct.unpack(">II", picture[16:24])
    assert picture.startswith(b"\x89PNG") and width >= 2400 and height > 300


def test_search_marks_the_words_that_bring_a_text_near_the_query(browser):
    browser.open(SEARCH)
    browser.wait_for_answer()
    hits = browser.texts(".hit")
    assert {"I would like a refund.", "Please send the money back to my card."} == set(hits[:2])
    assert {"money", "refund"} <= set(browser.texts("mark.add-6, mark.add-5, mark.add-4, mark.add-3"))


def test_both_languages_cover_the_whole_page(browser):
    browser.open(EXAMPLE, language="ko")
    browser.wait_for_answer()
    assert browser.text("h1") == "문장들은 서로 얼마나 비슷할까요?" and browser.text("#count") == "텍스트 12개"
    assert browser.script("return document.documentElement.lang") == "ko"
    browser.click("#language [value='en']")
    browser.wait("return document.querySelector('h1').innerText === 'How similar are they?'")
    english, korean = browser.script(NAMES)
    assert english == korean


def test_the_language_is_the_browsers_until_one_is_chosen(browser):
    cdp = browser.driver.execute_cdp_cmd
    agent = browser.script("return navigator.userAgent")
    cdp("Network.setUserAgentOverride", {"userAgent": agent, "acceptLanguage": "ko-KR"})
    try:
        browser.open(language="")
        browser.wait("return document.documentElement.lang === 'ko'")
    finally:
        cdp("Network.setUserAgentOverride", {"userAgent": agent, "acceptLanguage": "en-US"})


def test_a_korean_example_with_an_english_model_carries_a_warning(browser):
    browser.open("#example=support-ko")
    browser.wait_for_answer()
    assert "This model reads English" in browser.text("#notice")


def test_tabs_and_pictures_are_used_by_keyboard(browser):
    from selenium.webdriver.common.keys import Keys

    browser.open(EXAMPLE)
    browser.wait_for_answer()
    browser.find("#tab-matrix").send_keys(Keys.ARROW_RIGHT)
    browser.wait("return document.activeElement.id === 'tab-pairs' && document.querySelector('.results')")
    browser.find("#tab-pairs").send_keys(Keys.END)
    browser.wait("return document.activeElement.id === 'tab-explain'")
    browser.find("#tab-explain").send_keys(Keys.HOME)
    browser.wait("return document.querySelector('#tab-matrix').tabIndex === 0 && document.querySelector('canvas')")
    browser.find("canvas").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert browser.script("return document.querySelector('#said').textContent").startswith(
        "2. My order has not arrived yet., 3. When will you ship my parcel?, 0."
    )
    browser.find("canvas").send_keys(Keys.ENTER)
    browser.wait("return document.querySelector('.big')")
    assert browser.text("#tip") == "" or browser.script("return document.querySelector('#tip').hidden")


def test_another_model_and_its_own_limits_are_shown(browser):
    browser.open(f"{EXAMPLE}&view=layers&model=static")
    browser.wait("return !document.querySelector('#problem').hidden")
    assert "static model" in browser.text("#problem")
    browser.problems()  # the browser itself notes the status 400


def test_texts_are_shown_as_text(browser):
    browser.open()
    browser.find("#texts").send_keys("<img src=x onerror=alert(1)>\n<b>A cat</b> sits.")
    browser.wait_for_answer()
    for view in VIEWS:
        browser.click(f"#tab-{view}")
        browser.wait("return document.querySelector(`#tab-${arguments[0]}`).ariaSelected === 'true'", view)
        assert not browser.script("return document.querySelectorAll('main img, main b').length")


def test_a_server_with_keys_asks_for_one_and_forgets_it_with_the_tab(driver, module_browser, tmp_path):
    from twinvec.server.protection import new_key

    secret, key = new_key("page")
    keys = tmp_path / "keys"
    keys.write_text(f"{key.line()}\n")
    with live_server("static=twinvec-static", "--keys", keys) as server:
        browser = Browser(driver, server.url, tmp_path)
        browser.open(EXAMPLE)
        browser.wait("return document.querySelector('#key-dialog').open")
        browser.find("#key").send_keys(secret)
        browser.click("#key-dialog [value='save']")
        browser.wait_for_answer()
        assert browser.script("return Object.values(sessionStorage)") == [secret]
        assert secret not in browser.script("return JSON.stringify(localStorage) + location.href")
    assert all("401" in each for each in browser.problems())


@pytest.mark.parametrize(("language", "dark", "width"), [("en", False, 1280), ("ko", True, 390)])
def test_axe_finds_no_serious_violation(browser, language, dark, width):
    axe = os.environ.get("TWINVEC_AXE", "")
    if not Path(axe).is_file():
        skip_or_fail("TWINVEC_AXE names no axe.min.js")
    with browser.screen(width):
        browser.open(language=language, dark=dark)
        browser.wait("return document.querySelector('.cards')")
        browser.script(Path(axe).read_text(encoding="utf-8"))
        for view in ["", *VIEWS]:
            if view:
                browser.click(".card" if view == VIEWS[0] else f"#tab-{view}")
                browser.wait_for_answer()
            found = browser.driver.execute_async_script(RUN_AXE)
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            assert [(each["id"], each["nodes"][0]["html"]) for each in serious] == [], view


def test_the_page_fits_a_phone(browser):
    with browser.screen(360):
        browser.open(EXAMPLE)
        browser.wait_for_answer()
        for view in VIEWS:
            browser.script("document.querySelector(`#tab-${arguments[0]}`).click()", view)
            browser.wait_for_answer()
            assert browser.script("return document.documentElement.scrollWidth") <= 360, view
