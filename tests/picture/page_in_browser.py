#!/usr/bin/env python3
"""A page as a browser has it: page_in_browser.py BROWSER PAGE.html [SCREENSHOTS_PREFIX]

Headless Chromium, driven through a pipe. At 1400 and at 400 pixels, in light and in dark: no message of an error, no request but for the
page itself, nothing wider than the window. With the keyboard alone the reason for `stages` is open after two activations at most.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile


class Browser:
    def __init__(self, program, profile):
        spare = [os.dup(0) for _ in range(4)]  # so that the pipes are none of 3 and 4
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        def wire():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        # The browser takes commands from descriptor 3 and answers on 4.
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for descriptor in (*spare, to_read, to_write):
            os.close(descriptor)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read_end, 1 << 16)
            if not part:
                sys.exit("the browser ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.write_end, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message())

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def key(self, name, code):
        for kind in ("keyDown", "keyUp"):
            more = {"text": "\r"} if name == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)


STAGES_SHOWN = """(() => { const d = [...document.querySelectorAll('details')].find(d => d.querySelector('summary b') && d.querySelector(':scope > summary b')?.textContent === 'stages');
  return !!d && d.open && d.querySelector('code').checkVisibility(); })()"""
FOCUSED = "document.activeElement?.tagName + ' ' + (document.activeElement?.textContent ?? '').trim()"


def check(browser, page, width, theme, screenshot):
    wrong = []
    browser.events.clear()
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    browser.call("Page.navigate", url="file://" + os.path.abspath(page))
    browser.wait("Page.loadEventFired")
    wide = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        wrong.append(f"{wide} pixels wider than the window")
    if not browser.value("document.querySelectorAll('figure svg').length"):
        wrong.append("no picture")
    small = browser.value("Math.min(...[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height))")
    if small is not None and small < 8.5:
        wrong.append(f"a text of a picture is {small:.1f} pixels high")
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    if browser.value("[...document.querySelectorAll('details > :not(summary)')].some(e => !e.checkVisibility())"):
        wrong.append("on paper a reason stays folded")
    browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": theme}])
    if browser.value("[...document.querySelectorAll('summary b')].some(b => b.textContent === 'stages')"):
        activations = 0
        for _ in range(400):
            browser.key("Tab", 9)
            focused = browser.value(FOCUSED)
            if focused.startswith("SUMMARY stages"):
                browser.key("Enter", 13)
                activations += 1
                break
        if not browser.value(STAGES_SHOWN) or activations > 2:
            wrong.append(f"the reason for stages is not shown after {activations} activations by keyboard")
    browser.value("0")  # what was asked for until now has been told
    for event in browser.events:
        method, given = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            url = given["request"]["url"]
            if not url.startswith(("data:", "file://" + os.path.abspath(page))):
                wrong.append("asks for " + url)
        elif method == "Runtime.exceptionThrown":
            wrong.append("exception: " + json.dumps(given)[:200])
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            wrong.append("console: " + given["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            wrong.append("console: " + json.dumps(given)[:200])
    if screenshot:
        picture = browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(f"{screenshot}-{width}-{theme}.png", "wb") as file:
            file.write(base64.b64decode(picture))
    return [f"{width} pixels, {theme}: {text}" for text in wrong]


def main():
    program, page = sys.argv[1:3]
    wrong = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Runtime", "Log"):
                browser.call(domain + ".enable")
            for width in (1400, 400):
                for theme in ("light", "dark"):
                    wrong += check(browser, page, width, theme, sys.argv[3] if len(sys.argv) > 3 else None)
        finally:
            browser.process.kill()
            browser.process.wait()
    print("\n".join(wrong) if wrong else f"{page}: as it should be at 1400 and 400 pixels, light and dark")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
