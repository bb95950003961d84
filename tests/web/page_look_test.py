# SPDX-License-Identifier: Apache-2.0
"""How the page looks, and whether keyboard and screen reader reach all of it. Keeps pictures in build/web.

With NT_DOCS_IMAGES=1 it also writes the pictures of docs/images.
"""

import os
from pathlib import Path

import demo
import suite
from page_case import PICTURES, ROOT, PageCase

SIZES = ((1280, 800), (2560, 1440))
AUDIT = Path(__file__).with_name("page_audit.js").read_text(encoding="utf-8")
DOCS_IMAGE_BYTES_MAX = 300_000

# What has the focus, where it is on the page, and whether that is seen.
FOCUS = """const node = document.activeElement, style = getComputedStyle(node);
if (node === document.body) return null;
const region = node.closest('.top-bar, .warnings, .corner, .tree, .splitter, .canvas-box, .dock, .manager-body');
return {region: region ? region.classList[0] : node.outerHTML.slice(0, 80), text: node.outerHTML.slice(0, 120),
        visible: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1};"""


class PageLook(PageCase):
    duration = "3s"

    def views(self):
        """The views that are audited and photographed: a name, and what shows each."""
        hit = self.barrier_of(demo.STRAGGLER)
        start, length = int(hit["start_ns"]), int(hit["duration_ns"])
        near = {"from": start - 3_000_000, "to": start + length + 1_500_000}
        ranks = sorted(stream["number"] for stream in self.ranks().values())
        layout = self.layout()
        box = f"{near['from']}.{near['to']}.{ranks[0]}-{ranks[-1]}"
        whole = {"from": layout["begin_ns"], "to": layout["end_ns"]}
        return {
            "timeline": {},
            "barrier": near,
            "open": {**near, "open": f"{hit['stream']}"},
            "details": {**near, "open": f"{hit['stream']}", "panel": "details", "span": f"{hit['stream']}.{hit['row']}.{start}"},
            "search": {**near, "q": f"name:{demo.BARRIER}", "panel": "search"},
            "selection": {**near, "box": box, "panel": "selection"},
            "heat": {**whole, "panel": "heat", "metric": "late"},
            "table": {**near, "panel": "table"},
            "markers": {**near, "panel": "markers", "m": f"{start}.the straggler arrives"},
        }

    def show(self, view):
        self.open_timeline(**view)
        self.browser.wait_for("return !document.querySelector('.dock-body .notice.loading')")

    def show_manager(self):
        self.sign_in()

    def show_about(self):
        self.browser.open(f"{self.api.origin}/capture/{self.capture_id}/about")
        self.wait_for_text(".verdict", "omplete")
        self.browser.wait_for("return document.querySelector('.host-chart') !== null")
        self.browser.wait_for("return document.querySelector('.artifacts') !== null")
        self.browser.wait_for("return document.querySelector('.exports') !== null")

    def test_every_view_has_names_roles_and_contrast(self):
        for dark in (False, True):
            self.browser.set_dark(dark)
            self.audit("manager", self.show_manager)
            self.audit("about", self.show_about)
            for name, view in self.views().items():
                self.audit(name, lambda shown=view: self.show(shown))

    def audit(self, name, show):
        show()
        dark = self.browser.run("return document.documentElement.dataset.theme")
        with self.subTest(view=name, theme=dark):
            self.assertEqual(self.browser.run(AUDIT), [])
            self.assertEqual(self.browser.console_errors(), [])

    def test_dialogs_and_menus_have_names_roles_and_contrast(self):
        self.open_timeline()
        self.browser.press("?")
        self.audit("keys", lambda: self.browser.wait_for("return document.querySelector('dialog[open]') !== null"))
        self.browser.press("Escape")
        self.browser.click(".top-bar .menu button")
        self.audit("export menu", lambda: self.browser.wait_for("return document.querySelector('[role=menuitem]') !== null"))
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('role')"), "menuitem")
        self.browser.press("Escape")
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-haspopup')"), "menu", "the focus returns")
        self.sign_in()
        self.browser.click(".top-bar .primary")
        self.audit("start dialog", lambda: self.browser.wait_for("return document.querySelector('dialog[open]') !== null"))

    def test_audit_finds_what_is_wrong(self):
        self.sign_in()
        self.browser.run("""document.querySelector('.manager-body').insertAdjacentHTML('beforeend', `
            <button type="button"></button><p id="pale">pale</p><h1>another</h1>
            <span id="twice"></span><span id="twice"></span><div role="tab">lost</div><label for="nothing">x</label>`);
            document.getElementById('pale').style.cssText = 'color: #999; background: #fff';""")
        found = self.browser.run(AUDIT)
        for text in ("no name: <button", "contrast 2.8", "2 headings", "the id twice", "tab outside of a tablist",
                     "tab without aria-selected", "for names nothing"):
            self.assertTrue(any(text in line for line in found), (text, found))

    def focus_order(self):
        """The regions that Tab reaches, in their order."""
        self.browser.run("document.activeElement.blur()")
        regions = []
        for _ in range(80):
            self.browser.press("Tab")
            focus = self.browser.run(FOCUS)
            if focus is None:
                break
            self.assertTrue(focus["visible"], focus["text"])
            if not regions or regions[-1] != focus["region"]:
                regions.append(focus["region"])
        return regions

    def test_tab_goes_through_the_page_in_the_order_of_reading(self):
        self.open_timeline()
        order = [region for region in self.focus_order() if region != "warnings"]  # where the capture has some
        self.assertEqual(order, ["top-bar", "corner", "tree", "splitter", "canvas-box", "dock"])
        self.sign_in()
        self.assertEqual(self.focus_order(), ["top-bar", "manager-body"])

    def test_tree_is_used_by_keyboard_alone(self):
        self.open_timeline()
        self.browser.run("document.querySelector('.tree').focus()")
        self.browser.press("Down", "Down", "Right")
        self.settle()
        active = self.browser.run("const tree = document.querySelector('.tree');"
                                  "return document.getElementById(tree.getAttribute('aria-activedescendant'))?.innerText ?? ''")
        self.assertIn("gid0 ", active)
        self.assertGreater(sum(line["level"] == 3 for line in self.lines()), 0)

    def test_theme_follows_the_system_until_a_person_chooses(self):
        self.sign_in()
        theme = "return document.documentElement.dataset.theme"
        self.assertEqual(self.browser.run(theme), "light")
        self.browser.set_dark(True)
        self.browser.wait_for("return document.documentElement.dataset.theme === 'dark'")
        self.browser.click("[aria-label='Light or dark']")
        self.assertEqual(self.browser.run(theme), "light")
        self.open_timeline()
        self.assertEqual(self.browser.run(theme), "light", "the choice is kept")

    def test_pictures(self):
        views = self.views()
        for width, height in SIZES:
            self.browser.resize(width, height)
            for dark in (False, True):
                self.browser.set_dark(dark)
                suffix = f"{width}-{'dark' if dark else 'light'}.png"
                self.show_manager()
                self.browser.screenshot(PICTURES / f"manager-{suffix}")
                self.show_about()
                self.browser.screenshot(PICTURES / f"about-{suffix}")
                for name, view in views.items():
                    self.show(view)
                    self.browser.screenshot(PICTURES / f"{name}-{suffix}")
                    # Nothing is wider than the window.
                    self.assertEqual(self.browser.run("return document.documentElement.scrollWidth"), width, name)
        if os.environ.get("NT_DOCS_IMAGES"):
            self.write_docs_images(views)

    def write_docs_images(self, views):
        self.browser.set_dark(False)
        self.browser.resize(1280, 800)
        self.show_manager()
        self.browser.screenshot(ROOT / "docs" / "images" / "captures.png")
        self.show(views["open"])
        self.browser.screenshot(ROOT / "docs" / "images" / "timeline.png")
        for name in ("captures.png", "timeline.png"):
            self.assertLess((ROOT / "docs" / "images" / name).stat().st_size, DOCS_IMAGE_BYTES_MAX, name)


if __name__ == "__main__":
    suite.main()
