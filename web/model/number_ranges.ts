// SPDX-License-Identifier: Apache-2.0
// Sets of numbers in a URL: "1,4-9,12".

export function formatRanges(numbers: Iterable<number>): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end] + 1) ++end;
    parts.push(end === i ? `${sorted[i]}` : `${sorted[i]}-${sorted[end]}`);
    i = end + 1;
  }
  return parts.join(',');
}

// Ignores what is no range. At most limit numbers, because a URL may come from anybody.
export function parseRanges(text: string, limit = 100000): number[] {
  const numbers: number[] = [];
  for (const part of text.split(',')) {
    const match = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part.trim());
    if (!match) continue;
    const first = Number(match[1]), last = match[2] === undefined ? first : Number(match[2]);
    for (let n = first; n <= last && numbers.length < limit; ++n) numbers.push(n);
  }
  return numbers;
}
