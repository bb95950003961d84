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
HEIGHTS = {"stat": 4, "timeseries": 8}


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


def field_config(panel):
    thresholds = [{"color": "green", "value": None}]
    if panel.get("red") is not None:
        thresholds.append({"color": "red", "value": panel["red"]})
    defaults = {"unit": panel.get("unit", "short"), "min": 0,
                "thresholds": {"mode": "absolute", "steps": thresholds}}
    if panel["type"] == "timeseries":
        defaults["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never",
                              "thresholdsStyle": {"mode": "line" if len(thresholds) > 1 else "off"}}
    return {"defaults": defaults, "overrides": []}


def options(panel):
    if panel["type"] == "stat":
        return {"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "textMode": "auto"}
    return {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def make_panel(number, panel, place):
    targets = [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expr, "legendFormat": legend,
                "range": True, "instant": False} for i, (expr, legend) in enumerate(panel["queries"])]
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
