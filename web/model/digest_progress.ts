// SPDX-License-Identifier: Apache-2.0
import {SpanTile} from './span_tile';
import {formatCount} from './text_format';

// The first and the last group of a stream's digests may be read at every question.
const kEdgeChunks = 16;
// Windows of fewer chunks are read in full, see docs/formats/view_api.md.
const kExactChunksMax = 400;

interface Part {
  digested: number;
  read: number;
}

// How much of a capture the aggregator has digested, as far as answers about the whole capture tell. Each is about one
// block of streams; a later one about the same block replaces it.
export class DigestProgress {
  private readonly parts = new Map<number, Part>();  // by the block's first stream

  // Takes notice of an answer; those about a part of the capture do not count.
  learn(tile: SpanTile, capture: {begin: number, end: number}): void {
    if (tile.from > capture.begin || tile.to < capture.end || tile.byStream.size === 0) return;
    const read = Math.max(0, tile.readChunks - kEdgeChunks * tile.byStream.size);
    this.parts.set(Math.min(...tile.byStream.keys()), {
      digested: tile.digestedChunks + tile.readChunks - read,
      read: tile.digestedChunks + tile.readChunks > kExactChunksMax ? read : 0
    });
  }

  // '' if nothing is left to digest, or nothing needs it.
  get text(): string {
    let read = 0, all = 0;
    for (const part of this.parts.values()) {
      read += part.read;
      all += part.digested + part.read;
    }
    return read === 0 ? ''
                      : `${formatCount(all - read)} of ${formatCount(all)} chunks digested; answers read the others`;
  }
}
