// SPDX-License-Identifier: Apache-2.0

// What one frame shows, as integers that can be handed to a worker without copying: a header, then sections, each a run
// of records of the same size. All lengths are pixels of the device.
//   fill   strip, from, to, kind           a stretch of a pixel row of the strip
//   grid   x
//   span   begin | end << 16, strip | colour << 16
//   line   y, kind
//   bar    x, y, width, height             of counters
//   gap    x, y, width, height, kind, text (an index, or -1), height of the text's line
//   label  x, strip, room, name
export const kFill = 0, kGrid = 1, kSpan = 2, kLine = 3, kBar = 4, kGap = 5, kLabel = 6;
export const kSections = 7;
export const kRecordSize = [4, 1, 2, 2, 4, 7, 4];

// Kinds of fills, lines and gaps.
export const kHeaderFill = 0, kBandFill = 1, kUnknownFill = 2;
export const kTrackLine = 0, kPinnedLine = 1;
export const kLossGap = 0, kSuspensionGap = 1, kDamageGap = 2;

const kWidth = 0, kHeight = 1, kUnitPx = 2, kStrips = 3, kScale = 4, kCounterColour = 5, kOffsets = 6;
const kHeaderSize = kOffsets + kSections + 1;

// Writes a scene. Sections are begun in their order; the array grows as needed and is reused.
export class SceneWriter {
  data = new Int32Array(1 << 16);
  texts: string[] = [];
  private length = kHeaderSize;
  private section = -1;

  // `scale`: pixels of the device for one CSS pixel.
  start(width: number, height: number, unitPx: number, strips: number, scale: number, counterColour: number): void {
    const {data} = this;
    data[kWidth] = width;
    data[kHeight] = height;
    data[kUnitPx] = unitPx;
    data[kStrips] = strips;
    data[kScale] = Math.round(scale * 1024);
    data[kCounterColour] = counterColour;
    this.texts = [];
    this.length = kHeaderSize;
    this.section = -1;
  }

  // Makes room for this many records of a section, which becomes the current one.
  begin(section: number, records: number): void {
    if (section < this.section) throw new RangeError('sections of a scene have an order');
    while (this.section < section) this.data[kOffsets + ++this.section] = this.length;
    this.reserve(records * kRecordSize[section]);
  }

  put(a: number, b = 0, c = 0, d = 0): void {
    const size = kRecordSize[this.section];
    this.reserve(size);
    const {data} = this;
    data[this.length] = a;
    if (size > 1) data[this.length + 1] = b;
    if (size > 2) {
      data[this.length + 2] = c;
      data[this.length + 3] = d;
    }
    this.length += size;
  }

  putGap(x: number, y: number, width: number, height: number, kind: number, text: string, lineHeight: number): void {
    this.reserve(kRecordSize[kGap]);
    this.data.set([x, y, width, height, kind, text ? this.texts.push(text) - 1 : -1, lineHeight], this.length);
    this.length += kRecordSize[kGap];
  }

  finish(): void {
    while (this.section < kSections) this.data[kOffsets + ++this.section] = this.length;
  }

  private reserve(words: number): void {
    if (this.length + words <= this.data.length) return;
    const grown = new Int32Array(Math.max(this.length + words, this.data.length * 2));
    grown.set(this.data.subarray(0, this.length));
    this.data = grown;
  }
}

// Reads what a SceneWriter wrote.
export class Scene {
  constructor(readonly data: Int32Array, readonly texts: readonly string[]) {}

  get width(): number {
    return this.data[kWidth];
  }
  get height(): number {
    return this.data[kHeight];
  }
  get unitPx(): number {
    return this.data[kUnitPx];
  }
  get strips(): number {
    return this.data[kStrips];
  }
  get scale(): number {
    return this.data[kScale] / 1024;
  }
  // An index into the palette.
  get counterColour(): number {
    return this.data[kCounterColour];
  }

  // Where a section begins in `data`; that of the next one is its end.
  at(section: number): number {
    return this.data[kOffsets + section];
  }
}
