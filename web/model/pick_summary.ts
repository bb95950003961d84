// SPDX-License-Identifier: Apache-2.0

export interface PickedLine {
  name: string;
  count: number;
  total: number;
  self: number;
  p50: number;
  p99: number;
  min: number;
  max: number;
}

// Adds up picked spans by what `keyOf` returns, the largest total first. Lengths are nanoseconds.
export function summarise<P extends {duration: number, self: number}>(
    picks: readonly P[], keyOf: (pick: P) => string): PickedLine[] {
  const groups = new Map<string, P[]>();
  for (const pick of picks) {
    const key = keyOf(pick), held = groups.get(key);
    if (held)
      held.push(pick);
    else
      groups.set(key, [pick]);
  }
  const lines: PickedLine[] = [];
  for (const [name, members] of groups) {
    const lengths = members.map(pick => pick.duration).sort((a, b) => a - b), n = lengths.length;
    const quantile = (q: number): number => lengths[Math.min(n - 1, Math.max(0, Math.ceil(q * n) - 1))];
    lines.push({
      name,
      count: n,
      total: lengths.reduce((sum, length) => sum + length, 0),
      self: members.reduce((sum, pick) => sum + pick.self, 0),
      p50: quantile(0.5),
      p99: quantile(0.99),
      min: lengths[0],
      max: lengths[n - 1]
    });
  }
  return lines.sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
}
