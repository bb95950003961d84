#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dashboards/*.json for Grafana out of dashboard_panels.py, which says what they show.

usage: make_dashboards.py [--check]

  (nothing)  write the files
  --check    write nothing; exit 1 and name the files that differ

example:
  deploy/observability/make_dashboards.py
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dashboard_panels  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent / "dashboards"
COLUMNS = 24
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
HEIGHTS = {"stat": 4, "timeseries": 9}
COUNTED = ("short", "cps")  # in these units 1 is not little


def variables(dashboard):
    """The data source, and the instances that a dashboard is about."""
    metric, label = dashboard["over"]
    query = f"label_values({metric}, {label})"
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {},
         "hide": 0, "includeAll": False, "multi": False, "options": [], "refresh": 1, "regex": ""},
        {"name": label, "label": label, "type": "query", "datasource": SOURCE, "definition": query,
         "query": {"query": query, "refId": "variable"}, "current": {"text": ["All"], "value": ["$__all"]},
         "includeAll": True, "allValue": ".*", "multi": True, "hide": 0, "options": [], "refresh": 2, "regex": "",
         "sort": 1},
    ]


def is_drawn(panel):
    return panel["type"] == "timeseries"


def thresholds(panel):
    """Red from `red` on, as a line; or red below `below`, as an area, as the line would have the colour above it."""
    if "below" in panel:
        good = "transparent" if is_drawn(panel) else "green"
        return "area", [{"color": "red", "value": None}, {"color": good, "value": panel["below"]}]
    if "red" in panel:
        return "line", [{"color": "green", "value": None}, {"color": "red", "value": panel["red"]}]
    return "off", [{"color": "green", "value": None}]


def is_open_ended(panel):
    """Whether how many lines it has is not known here, or they are more than a legend of one line holds."""
    return len(panel["queries"]) > 4 or any("{{" in name for _, name in panel["queries"])


def field_config(panel):
    unit = panel.get("unit", "short")
    style, steps = thresholds(panel)
    defaults = {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}}
    least = panel.get("min", 0)
    if least is not None:
        defaults["min"] = least
    if "decimals" in panel:
        defaults["decimals"] = panel["decimals"]
    if is_drawn(panel):
        # A filled line hides the ones behind it. Points: a line of one value, between two gaps, is seen by them alone.
        defaults["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10 if len(panel["queries"]) == 1
                              and not is_open_ended(panel) else 0, "showPoints": "auto",
                              "thresholdsStyle": {"mode": style}}
        if unit in COUNTED:  # else the axis of what is 0 all the time ends at 100
            defaults["custom"]["axisSoftMax"] = 1
        if least is None:  # 0 is shown, and what is below it
            defaults["custom"]["axisSoftMin"] = 0
        if panel.get("log"):
            defaults["custom"]["scaleDistribution"] = {"type": "log", "log": 10}
    return {"defaults": defaults, "overrides": []}


def legend(panel):
    """Of few lines a list; else a table, the worst line first, as there is room for the first ones only."""
    if not is_open_ended(panel):
        return {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    least = panel.get("least", False)
    return {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["min" if least else "max"],
            "sortBy": "Min" if least else "Max", "sortDesc": not least}


def options(panel):
    if is_drawn(panel):
        return {"legend": legend(panel), "tooltip": {"mode": "multi", "sort": "asc" if panel.get("least") else "desc"}}
    return {"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "textMode": "auto"}


def make_panel(number, panel, place):
    once = not is_drawn(panel)  # a number is that of now: the last one of the range may be of a program that is gone
    targets = [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expr, "legendFormat": name,
                "range": not once, "instant": once} for i, (expr, name) in enumerate(panel["queries"])]
    return {"id": number, "type": panel["type"], "title": panel["title"], "description": panel["says"],
            "datasource": SOURCE, "gridPos": place, "targets": targets, "fieldConfig": field_config(panel),
            "options": options(panel)}


def lay_out(rows):
    """Panels from left to right below the title of their row; each as wide as its part of the row."""
    laid, y = [], 0
    for title, panels in rows:
        laid.append({"id": len(laid) + 1, "type": "row", "title": title, "collapsed": False, "panels": [],
                     "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
        y += 1
        x = height = 0
        for panel in panels:
            width = panel.get("width", 8)
            if x + width > COLUMNS:
                x, y, height = 0, y + height, 0
            place = {"x": x, "y": y, "w": width, "h": HEIGHTS[panel["type"]]}
            laid.append(make_panel(len(laid) + 1, panel, place))
            x, height = x + width, max(height, place["h"])
        y += height
    return laid


def make_dashboard(dashboard):
    return {"uid": f"neurontrace-{dashboard['name']}", "title": f"neurontrace / {dashboard['title']}",
            "description": dashboard["says"], "tags": ["neurontrace"], "schemaVersion": 38, "version": 1,
            "editable": True, "graphTooltip": 1, "refresh": "30s", "timezone": "browser",
            "time": {"from": "now-1h", "to": "now"}, "annotations": {"list": []}, "links": [],
            "templating": {"list": variables(dashboard)}, "panels": lay_out(dashboard["rows"])}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__)
        return 0 if sys.argv[1] in ("--help", "-h") else 2
    differ = []
    for dashboard in dashboard_panels.DASHBOARDS:
        path = FOLDER / f"{dashboard['name']}.json"
        text = json.dumps(make_dashboard(dashboard), indent=1) + "\n"
        if not check:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differ.append(path.name)
    if differ:
        print(f"make_dashboards: {', '.join(differ)} differ: run deploy/observability/make_dashboards.py")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
