// SPDX-License-Identifier: Apache-2.0
import {SpanTile} from './span_tile';

export interface HeldTile {
  block: number;
  tile: SpanTile;
  nsPerPx: number;  // that it was asked for
  version: string;  // of the layout when it was asked for
  used: number;     // when it was last drawn
}

// How many pixels of the screen one of the answer's may take before it is asked for again.
const kBlurMax = 1.5;

// The answers that are kept, by block of streams. What was not drawn for longest is dropped first.
export class TileStore {
  bytes = 0;
  private readonly byBlock = new Map<number, HeldTile[]>();
  private clock = 0;

  constructor(private readonly bytesMax: number) {}

  add(block: number, tile: SpanTile, nsPerPx: number, version: string): void {
    let held = this.byBlock.get(block);
    if (!held) this.byBlock.set(block, held = []);
    // An answer that shows the same stretch no better is of no use any more.
    for (let i = held.length - 1; i >= 0; --i) {
      const old = held[i];
      const isCovered = old.tile.from >= tile.from && old.tile.to <= tile.to && old.nsPerPx >= nsPerPx * 0.9;
      const isSameLevel = isCovered && old.nsPerPx < nsPerPx * 1.5;
      if (isSameLevel || (isCovered && old.version !== version)) this.remove(held, i);
    }
    held.push({block, tile, nsPerPx, version, used: ++this.clock});
    this.byBlock.set(block, held);  // it was removed if nothing was left
    this.bytes += tile.bytes;
    this.evict();
  }

  // The best answer to draw this window with: one that covers it and is sharp enough, else the nearest coarser one,
  // else what covers most of it.
  best(block: number, from: number, to: number, nsPerPx: number): HeldTile|null {
    let best: HeldTile|null = null, bestScore = -Infinity;
    const all = this.byBlock.get(block);
    for (let i = 0; all && i < all.length; ++i) {
      const held = all[i], overlap = Math.min(to, held.tile.to) - Math.max(from, held.tile.from);
      if (overlap <= 0) continue;
      const steps = Math.log2(held.nsPerPx / nsPerPx);
      // A finer answer is complete but has more items than there are pixels; a coarser one is blurred.
      const score = 100 * overlap / (to - from) - (steps > 0 ? 4 * steps : -1.5 * steps);
      if (score > bestScore) {
        bestScore = score;
        best = held;
      }
    }
    if (best) best.used = ++this.clock;
    return best;
  }

  // Whether an answer of this version covers the window and is sharp: asked for at nearly this resolution, or exact, so
  // that a closer look shows nothing new.
  isSharp(block: number, from: number, to: number, nsPerPx: number, version: string): boolean {
    return (this.byBlock.get(block) ?? [])
        .some(
            ({tile, nsPerPx: own, version: ownVersion}) => ownVersion === version && tile.from <= from &&
                tile.to >= to && own >= nsPerPx / 4 &&
                (own <= nsPerPx * kBlurMax || (tile.isExact && tile.unitNs <= nsPerPx)));
  }

  // How many blocks have a kept answer.
  get blocks(): number {
    return this.byBlock.size;
  }

  tilesOf(block: number): readonly HeldTile[] {
    return this.byBlock.get(block) ?? [];
  }

  // Drops the least recently drawn until the limit holds. One answer is always kept.
  private evict(): void {
    while (this.bytes > this.bytesMax) {
      let oldest: HeldTile|null = null, count = 0;
      for (const held of this.byBlock.values()) {
        for (const entry of held) {
          ++count;
          if (!oldest || entry.used < oldest.used) oldest = entry;
        }
      }
      if (!oldest || count <= 1) return;
      const held = this.byBlock.get(oldest.block)!;
      this.remove(held, held.indexOf(oldest));
    }
  }

  private remove(held: HeldTile[], index: number): void {
    const {block, tile} = held[index];
    this.bytes -= tile.bytes;
    held.splice(index, 1);
    if (held.length === 0) this.byBlock.delete(block);
  }
}
