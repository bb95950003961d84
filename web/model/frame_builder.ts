// SPDX-License-Identifier: Apache-2.0
// Binary answers for tests.

export interface BuiltRow {
  fields: Record<string, unknown>;
  items: {start: number, duration: number, count?: number, name?: number, depth?: number, flags?: number}[];
}

// A frame of a header and columns, as the server makes it.
export function buildFrame(header: Record<string, unknown>, columns: Uint8Array): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(header)), base = (8 + text.length + 7) & ~7;
  const buffer = new ArrayBuffer(base + columns.length), bytes = new Uint8Array(buffer);
  bytes.set([0x4e, 0x54, 0x56, 0x31]);
  new DataView(buffer).setUint32(4, text.length, true);
  bytes.set(text, 8);
  bytes.set(columns, base);
  return buffer;
}

export function buildSpans(header: Record<string, unknown>, rows: BuiltRow[]): ArrayBuffer {
  const parts: number[] = [], described: Record<string, unknown>[] = [];
  const put = (value: number, size: number): void => {
    for (let i = 0; i < size; ++i) parts.push(Math.floor(value / 2 ** (8 * i)) & 255);
  };
  const pad = (): void => {
    while (parts.length % 8) parts.push(0);
  };
  for (const {fields, items} of rows) {
    described.push({
      stream: 4,
      row: 1,
      name: 'thread',
      source: 'runtime',
      order: 0,
      depth: 1,
      mode: 'exact',
      events: String(items.length),
      items: items.length,
      offset: parts.length,
      ...fields
    });
    for (const [key, size] of [['start', 4], ['duration', 4], ['count', 4], ['name', 2], ['depth', 1], ['flags', 1]] as
         const) {
      for (const item of items) put(item[key] ?? (key === 'count' ? 1 : 0), size);
      pad();
    }
  }
  return buildFrame(
      {
        unit_ns: 1,
        version: '7',
        names: ['a', 'b'],
        categories: ['execution', 'collective'],
        name_category: [0, 1],
        cut: null,
        unreadable_chunks: 0,
        ...header,
        rows: described
      },
      Uint8Array.from(parts));
}
