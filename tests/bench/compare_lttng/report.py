# SPDX-License-Identifier: Apache-2.0
"""The results as tables for docs/benchmarks.md."""


def _spread(spread, form="{:.2f}", scale=1.0):
    low, mid, high = (form.format(spread[key] * scale) for key in ("min", "median", "max"))
    return mid if low == high else f"{mid} ({low} to {high})"


def _rates(results):
    lines = ["| collector | loss-free rate, M events/s | what ended it |", "| --- | --- | --- |"]
    for found in filter(None, results.values()):
        limits = found["limits"]
        why = ", ".join(f"{word} {limits.count(word)}x" for word in sorted(set(limits)))
        lines.append(f"| {found['name']} | {_spread(found['rate'], scale=1e-6)} | {why} |")
    return lines


def _costs(results):
    lines = ["| collector | CPU s a million events, all daemons | by part | in the application | B on disk an event |",
             "| --- | --- | --- | --- | --- |"]
    for found in filter(None, results.values()):
        cpu = found["cpu_seconds_per_million"]
        parts = ", ".join(f"{part} {spread['median']:.3f}" for part, spread in cpu.items() if part != "total")
        lost = f"; {found['lost']:,} events lost" if found["lost"] else ""
        lines.append(f"| {found['name']} | {_spread(cpu['total'], '{:.3f}')} | {parts}{lost} | "
                     f"{_spread(found['producer_cpu_seconds_per_million'], '{:.3f}')} | "
                     f"{_spread(found['bytes_per_event'], '{:.1f}')} |")
    return lines


def _kills(results):
    lines = ["| killed with -9 | readable afterwards | events lost | loss counted exactly | the reader says |",
             "| --- | --- | --- | --- | --- |"]
    for found in filter(None, results.values()):
        lines.append(f"| {found['daemon']} ({found['name']}) | {_spread(found['readable_share'], '{:.1f} %', 100)} | "
                     f"{_spread(found['lost'], '{:,.0f}')} | {found['rounds_counted']} of {len(found['rounds'])} | "
                     f"{'; '.join(found['problems']) or 'nothing wrong'} |")
    return lines


def markdown(results):
    """All tables that were measured, and how."""
    lines = [f"{results['processes']} producers with {results['cores']} NeuronCores each on {results['processors']} "
             f"processors, seed {results['seed']}, {results['rounds']} rounds: median (least to greatest); load before "
             f"{results['load_before']:.1f}.", ""]
    for section, table in (("rate", _rates), ("cost", _costs), ("kill", _kills)):
        if results[section]:
            lines += [*table(results[section]), ""]
    lines += [f"Not measured: {error}" for error in results["errors"]]
    return "\n".join(lines).rstrip()
