// SPDX-License-Identifier: Apache-2.0

const kMagic = 0x3156544e;  // "NTV1", little-endian

// A binary answer: a JSON header, then columns that are read in place (docs/formats/view_api.md).
export class BinaryFrame {
  readonly header: Record<string, unknown>;
  private readonly base: number;

  // Throws a RangeError if the bytes are no such answer.
  constructor(private readonly buffer: ArrayBuffer) {
    if (buffer.byteLength < 8) throw new RangeError('the answer ends before its header');
    const view = new DataView(buffer);
    if (view.getUint32(0, true) !== kMagic) throw new RangeError('the answer does not begin with NTV1');
    const length = view.getUint32(4, true);
    if (8 + length > buffer.byteLength) throw new RangeError('the answer ends within its header');
    this.header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    this.base = (8 + length + 7) & ~7;
  }

  get byteLength(): number {
    return this.buffer.byteLength;
  }

  u32(offset: number, count: number): Uint32Array {
    return new Uint32Array(this.buffer, this.place(offset, count, 4), count);
  }

  f32(offset: number, count: number): Float32Array {
    return new Float32Array(this.buffer, this.place(offset, count, 4), count);
  }

  u16(offset: number, count: number): Uint16Array {
    return new Uint16Array(this.buffer, this.place(offset, count, 2), count);
  }

  u8(offset: number, count: number): Uint8Array {
    return new Uint8Array(this.buffer, this.place(offset, count, 1), count);
  }

  private place(offset: number, count: number, size: number): number {
    const at = this.base + offset;
    if (!Number.isSafeInteger(at) || offset < 0 || count < 0 || at + count * size > this.buffer.byteLength) {
      throw new RangeError('a column lies outside the answer');
    }
    return at;
  }
}
