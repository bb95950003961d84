// SPDX-License-Identifier: Apache-2.0
import {Track} from './track_tree';

// Sums of a list of numbers that change one by one (Fenwick, "A new data structure for cumulative frequency tables",
// 1994): changing a number and finding a place by its sum take a logarithm of the length.
class Sums {
  private readonly tree: Float64Array;
  private readonly top: number;  // the largest power of two in the length

  constructor(values: ArrayLike<number>) {
    const n = values.length;
    this.tree = new Float64Array(n + 1);
    for (let i = 1; i <= n; ++i) {
      this.tree[i] += values[i - 1];
      const parent = i + (i & -i);
      if (parent <= n) this.tree[parent] += this.tree[i];
    }
    this.top = n > 0 ? 2 ** Math.floor(Math.log2(n)) : 0;
  }

  add(index: number, difference: number): void {
    for (let i = index + 1; i < this.tree.length; i += i & -i) this.tree[i] += difference;
  }

  // The sum of the numbers before `index`.
  before(index: number): number {
    let sum = 0;
    for (let i = index; i > 0; i -= i & -i) sum += this.tree[i];
    return sum;
  }

  // The last index whose sum before it is at most `sum`, of those with a number above 0.
  find(sum: number): number {
    let at = 0, rest = sum;
    for (let step = this.top; step > 0; step >>= 1) {
      if (at + step < this.tree.length && this.tree[at + step] <= rest) {
        at += step;
        rest -= this.tree[at];
      }
    }
    return at;
  }
}

// The lines of the tree in blocks: a header, the lines of a rank, or those of a rank in a group of rows. A block can be
// replaced without touching the lines of others: there may be 60,000.
export class TrackList {
  units = 0;
  length = 0;
  private unitSums = new Sums([]);
  private lengthSums = new Sums([]);

  constructor(private readonly blocks: Track[][] = []) {
    blocks.forEach((lines, block) => this.place(lines, block));
    const units = blocks.map(unitsOf), lengths = blocks.map(lines => lines.length);
    this.unitSums = new Sums(units);
    this.lengthSums = new Sums(lengths);
    this.units = this.unitSums.before(blocks.length);
    this.length = this.lengthSums.before(blocks.length);
  }

  lines(block: number): readonly Track[] {
    return this.blocks[block] ?? [];
  }

  replace(block: number, lines: Track[]): void {
    const old = this.blocks[block], oldUnits = unitsOf(old);
    this.place(lines, block);
    const units = unitsOf(lines) - oldUnits, length = lines.length - old.length;
    this.blocks[block] = lines;
    this.unitSums.add(block, units);
    this.lengthSums.add(block, length);
    this.units += units;
    this.length += length;
  }

  // The block and the line in it at this unit; of the last line if the unit is beyond it.
  at(unit: number): {block: number, line: number} {
    const block = Math.min(this.unitSums.find(Math.max(0, Math.min(unit, this.units - 1))), this.blocks.length - 1);
    const lines = this.blocks[block] ?? [], rest = unit - this.unitsBefore(block);
    let line = lines.length - 1;
    while (line > 0 && lines[line].top > rest) --line;
    return {block: Math.max(0, block), line: Math.max(0, line)};
  }

  // Of all lines above the block.
  unitsBefore(block: number): number {
    return this.unitSums.before(block);
  }

  lengthBefore(block: number): number {
    return this.lengthSums.before(block);
  }

  get blockCount(): number {
    return this.blocks.length;
  }

  // All lines, in a new array.
  flat(): Track[] {
    return this.blocks.flat();
  }

  private place(lines: Track[], block: number): void {
    let top = 0;
    for (const track of lines) {
      track.block = block;
      track.top = top;
      top += track.units;
    }
  }
}

function unitsOf(lines: readonly Track[]): number {
  const last = lines[lines.length - 1];
  return last ? last.top + last.units : 0;
}
