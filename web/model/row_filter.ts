// SPDX-License-Identifier: Apache-2.0
import {Stream} from './capture_layout';

// The filter box of the tree: words that must all occur in a rank's texts, `rank:13`, `rank:8-15`, `-word`.
export class RowFilter {
  private readonly words: string[] = [];
  private readonly without: string[] = [];
  private readonly ranks: [number, number][] = [];

  constructor(readonly text: string) {
    for (const part of text.toLowerCase().split(/\s+/)) {
      const rank = /^(?:rank|gid):(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
      if (rank)
        this.ranks.push([Number(rank[1]), Number(rank[2] ?? rank[1])]);
      else if (part.length > 1 && part[0] === '-')
        this.without.push(part.slice(1));
      else if (part)
        this.words.push(part);
    }
  }

  get isEmpty(): boolean {
    return !this.words.length && !this.without.length && !this.ranks.length;
  }

  accepts(stream: Stream, instanceLabel: string, rowNames: string[]): boolean {
    if (this.isEmpty) return true;
    const {gid} = stream;
    if (this.ranks.length && (gid === null || !this.ranks.some(([first, last]) => gid >= first && gid <= last)))
      return false;
    const text =
        [stream.label, stream.process, stream.job, stream.kind, instanceLabel, ...rowNames].join(' ').toLowerCase();
    return this.words.every(word => text.includes(word)) && !this.without.some(word => text.includes(word));
  }
}
