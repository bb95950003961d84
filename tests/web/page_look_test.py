# SPDX-License-Identifier: Apache-2.0
"""How the page looks, and whether keyboard and screen reader reach all of it. Keeps pictures in build/web.

With NT_LONG=1 it looks at every view in a large window too. With NT_DOCS_IMAGES=1 it also writes the pictures of docs/images.
"""

import functools
import os
from pathlib import Path

import demo
import suite
from page_case import PICTURES, ROOT, PageCase

SIZES = ((1280, 800), (2560, 1440)) if suite.LONG else ((1280, 800),)
AUDIT = Path(__file__).with_name("page_audit.js").read_text(encoding="utf-8")
DOCS_IMAGE_BYTES_MAX = 300_000
AXE, AXE_MISSING = suite.built_by("setup_axe")
# The rules of WCAG 2.1 AA that axe-core (https://github.com/dequelabs/axe-core) checks, besides those of page_audit.js.
AXE_SCRIPT = Path(AXE).read_text(encoding="utf-8") + """
return axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations']}).then(
  result => result.violations.filter(found => ['serious', 'critical'].includes(found.impact)).flatMap(
    found => found.nodes.map(node => `${found.id}: ${found.help}: ${node.html.slice(0, 200)}`)));""" if AXE else ""

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
            "why": {**whole, "panel": "why"},
            "heat-why": {**whole, "panel": "heat", "metric": "late", "why": "all"},
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
        """And its picture is taken, and nothing in it is wider than the window."""
        shown = {"manager": self.show_manager, "about": self.show_about,
                 **{name: functools.partial(self.show, view) for name, view in self.views().items()}}
        for width, height in SIZES:
            self.browser.resize(width, height)
            for dark in (False, True):
                self.browser.set_dark(dark)
                for name, show in shown.items():
                    self.audit(name, show)
                    self.browser.screenshot(PICTURES / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                    self.assertEqual(self.browser.run("return document.documentElement.scrollWidth"), width, name)
        if os.environ.get("NT_DOCS_IMAGES"):
            self.write_docs_images()

    def audit(self, name, show):
        show()
        dark = self.browser.run("return document.documentElement.dataset.theme")
        with self.subTest(view=name, theme=dark):
            self.assertEqual(self.browser.run(AUDIT), [])
            self.assertEqual(self.axe_findings(), [])
            self.assertEqual(self.browser.console_errors(), [])

    def axe_findings(self):
        """What axe-core calls serious or critical; nothing where it is not installed, which a test of its own reports."""
        return self.browser.run(AXE_SCRIPT) if AXE_SCRIPT else []

    @suite.needs_of_setup(not AXE, AXE_MISSING)
    def test_axe_finds_what_is_wrong(self):
        self.sign_in()
        self.assertEqual(self.axe_findings(), [])
        self.browser.run("""document.querySelector('.manager-body').insertAdjacentHTML('beforeend',
            '<button type="button"></button><div role="tab">lost</div>');""")
        found = self.axe_findings()
        for rule in ("button-name", "aria-required-parent"):
            self.assertTrue(any(line.startswith(f"{rule}:") for line in found), (rule, found))

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

    # -- without a mouse ------------------------------------------------------------------------------------------

    def tab_to(self, selector):
        """Presses Tab until what matches has the focus."""
        for _ in range(120):
            self.browser.press("Tab")
            if self.browser.run("return document.activeElement.matches(arguments[0])", selector):
                return
        self.fail(f"Tab does not reach {selector}")

    def focused(self):
        return self.browser.run("return document.activeElement.outerHTML.slice(0, 200)")

    def test_straggler_is_found_without_a_mouse(self):
        self.sign_in()
        self.tab_to(f"td.name a[title='{self.capture_id}']")
        self.browser.press("Enter")
        self.settle()
        # The barriers, and the first of them with its details and its neighbour.
        self.browser.press("/")
        self.browser.press(*f"name:{demo.BARRIER} rank:{demo.STRAGGLER}", "Enter")
        expected = self.view("search", q=f"name:{demo.BARRIER} rank:{demo.STRAGGLER}")
        self.wait_for_text(".dock-body", rf"{int(expected['total']):,} events")
        self.browser.press("Enter")
        self.wait_for_text(".search-count", r"^1 / \d+")
        self.browser.press("Escape")  # leaves the box
        self.browser.press("n")
        self.wait_for_text(".search-count", r"^2 / \d+")
        self.tab_to("#tab-search")
        self.browser.press("Left", "Left")
        self.wait_for_text(".details-head h2", demo.BARRIER)
        # Zoom, mark, and put the rank to the top of the tree.
        self.browser.press("f")
        self.settle()
        begin, end = self.window()
        hit = sorted(expected["hits"], key=lambda found: int(found["start_ns"]))[1]
        self.assertLess(end - begin, 3 * int(hit["duration_ns"]))
        self.browser.press("m")
        self.browser.wait_for("return location.search.includes('m=')")
        self.browser.press("0")
        self.settle()
        self.tab_to(".tree")
        label = self.ranks()[demo.STRAGGLER]["label"]
        for _ in range(40):
            self.browser.press("Down")
            if self.active_line().startswith(label):
                break
        self.browser.press("p")
        self.settle()
        self.assertEqual(self.lines()[0]["label"], label)
        # What is saved, and back to the list.
        self.tab_to(".top-bar .menu button")
        self.browser.press("Enter")
        self.browser.press("Down")
        self.assertIn("menuitem", self.focused())
        self.browser.press("Escape")
        self.assertIn('aria-haspopup="menu"', self.focused())
        self.tab_to(".top-bar .back")
        self.browser.press("Enter")
        self.browser.wait_for("return document.querySelector('.manager tbody tr') !== null")

    def active_line(self):
        """The line that the keyboard is at, as of the next frame."""
        return self.browser.run("""return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
            const id = document.querySelector('.tree').getAttribute('aria-activedescendant');
            done(document.getElementById(id)?.querySelector('.tree-label').innerText ?? '');
        })));""")

    def test_capture_is_started_stopped_and_deleted_without_a_mouse(self):
        self.sign_in()
        self.tab_to(".top-bar .primary")
        self.browser.press("Enter")
        self.browser.wait_for("return document.activeElement.id === 'start-name'")
        self.browser.press(*"by keys")
        self.tab_to("#start-duration")
        self.browser.press(*["Backspace"] * 5)
        self.tab_to("dialog .primary")
        self.browser.press("Enter")
        self.browser.wait_for("return document.querySelector('[title=\"More actions for by keys\"]') !== null")
        self.tab_to("[title='More actions for by keys']")
        # The rows of a list with a running capture are made again every two seconds.
        before = self.text_of(".manager tbody")
        self.browser.wait_for("return document.querySelector('.manager tbody').innerText !== arguments[0]", before)
        self.assertIn("More actions for by keys", self.focused(), "the keyboard keeps its place")
        for item in ("Stop", "Delete"):
            self.tab_to("[title='More actions for by keys']")
            self.browser.press("Enter")
            for _ in range(8):
                if self.browser.run("return document.activeElement.innerText.startsWith(arguments[0])", item):
                    break
                self.browser.press("Down")
            self.browser.press("Enter")
            if item == "Stop":
                self.browser.wait_for("return [...document.querySelectorAll('.manager tbody tr')]"
                                      ".find(row => row.innerText.includes('by keys'))?.innerText.includes('complete')")
        self.browser.wait_for("return document.activeElement.id === 'ask-text'")
        self.browser.press(*"by keys", "Enter")
        self.browser.wait_for("return document.querySelector('[title=\"More actions for by keys\"]') === null")

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

    def write_docs_images(self):
        views = self.views()
        self.browser.set_dark(False)
        self.browser.resize(1280, 800)
        self.show_manager()
        self.browser.screenshot(ROOT / "docs" / "images" / "captures.png")
        for view, name in (("open", "timeline.png"), ("heat", "heat.png"), ("why", "why.png")):
            self.show(views[view])
            self.browser.screenshot(ROOT / "docs" / "images" / name)
        for name in ("captures.png", "timeline.png", "heat.png", "why.png"):
            self.assertLess((ROOT / "docs" / "images" / name).stat().st_size, DOCS_IMAGE_BYTES_MAX, name)


if __name__ == "__main__":
    suite.main()
