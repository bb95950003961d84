// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. All functions are pure.

const kUnits: [number, string][] = [
  [86400e9, 'd'],
  [3600e9, 'h'],
  [60e9, 'min'],
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
];

// A duration with about four significant digits: "1.234 ms".
export function formatDuration(ns: number): string {
  if (!Number.isFinite(ns)) return '–';
  const size = Math.abs(ns);
  for (const [unit, name] of kUnits) {
    if (size >= unit) return `${trimmed(ns / unit)} ${name}`;
  }
  return `${Math.round(ns)} ns`;
}

function trimmed(value: number): string {
  const digits = Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return value.toFixed(digits).replace(/\.?0+$/, '');
}

// A moment relative to the capture's begin, exact: "5.750208312 s".
export function formatMoment(ns: number): string {
  if (!Number.isFinite(ns)) return '–';
  const whole = Math.round(ns), sign = whole < 0 ? '-' : '', size = Math.abs(whole);
  const fraction = String(size % 1e9).padStart(9, '0').replace(/(\d{6})0{0,3}$/, '$1');
  return `${sign}${Math.floor(size / 1e9)}.${fraction} s`;
}

// A time on an axis whose labels are stepNs apart: just enough digits to tell neighbours apart.
export function formatAxisTime(ns: number, stepNs: number): string {
  const [unit, name] = unitOf(Math.max(Math.abs(ns), stepNs));
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(stepNs / unit) - 1e-9)));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

function unitOf(ns: number): [number, string] {
  for (const unit of kUnits)
    if (ns >= unit[0] && unit[0] <= 1e9) return unit;
  return [1, 'ns'];
}

// A step of 1, 2 or 5 times a power of ten that leaves at least minimumPx between labels.
export function axisStep(nsPerPx: number, minimumPx: number): number {
  const least = nsPerPx * minimumPx;
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  for (const factor of [1, 2, 5, 10])
    if (factor * power >= least) return Math.max(1, factor * power);
  return Math.max(1, 10 * power);
}

export function formatCount(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

// "12.3 M" where a column has no room for all digits.
export function formatShortCount(value: number): string {
  for (const [unit, name] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']] as [number, string][]) {
    if (value >= unit) return `${trimmed(value / (unit === 1e4 ? 1e3 : unit))} ${name}`;
  }
  return formatCount(value);
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  const power = Math.min(5, Math.floor(Math.log10(bytes) / 3));
  return `${trimmed(bytes / Math.pow(1000, power))} ${['B', 'kB', 'MB', 'GB', 'TB', 'PB'][power]}`;
}

// A value of a counter with its unit, as the API names it.
export function formatValue(value: number, unit: string): string {
  if (unit === 'B') return formatBytes(value);
  if (unit === 'ns') return formatDuration(value);
  return `${Number(value.toPrecision(4))}${unit ? ' ' + unit : ''}`;
}

// The state of a capture as the operator service names it, such as CAPTURE_STATE_NOT_BEGUN.
export function formatState(state: string|undefined): string {
  return (state ?? '').replace(/^CAPTURE_STATE_/, '').toLowerCase().replace(/_/g, ' ') || 'unknown';
}

// Unix nanoseconds as UTC: "2026-11-27 20:05:22".
export function formatUtc(unixNs: bigint): string {
  const ms = Number(unixNs / 1000000n);
  if (ms <= 0 || ms > 8.64e15) return '–';
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

// "30s", "1.5 min", "250us" as nanoseconds; null if it is no duration.
export function parseDuration(text: string): number|null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h|d)\s*$/.exec(text);
  if (!match) return null;
  const units:
      Record<string, number> = {ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9, min: 60e9, m: 60e9, h: 3600e9, d: 86400e9};
  return Math.round(Number(match[1]) * units[match[2]]);
}
