import sys, json, glob
from xprof.convert import raw_to_tool_data as r
files = sys.argv[1:]
for tool in ("trace_viewer@", "trace_viewer", "overview_page"):
    try:
        names = r.xspace_to_tool_names(files)
        print("tools", names)
    except Exception as e: print("names", repr(e)[:300])
    try:
        data, ctype = r.xspace_to_tool_data(files, tool, {"trace_viewer_options": {"resolution": 8000, "start_time_ms": None, "end_time_ms": None}})
        d = json.loads(data)
        ev = d.get("traceEvents", [])
        print(tool, ctype, len(data), "events", len(ev), d.keys())
        for e in ev[:40]: print("  ", json.dumps(e)[:220])
        from collections import Counter
        print(Counter(e.get("ph") for e in ev))
        break
    except Exception as e: print(tool, repr(e)[:500])
