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

  // `rowNames`: null if they are not known, which accepts.
  accepts(stream: Stream, instanceLabel: string, rowNames: string[]|null): boolean {
    if (this.isEmpty) return true;
    const {gid} = stream;
    if (this.ranks.length && (gid === null || !this.ranks.some(([first, last]) => gid >= first && gid <= last)))
      return false;
    const own = ownText(stream, instanceLabel);
    if (this.without.some(word => own.includes(word))) return false;
    const missing = this.words.filter(word => !own.includes(word));
    return !missing.length || !rowNames || rowNames.some(name => matchesAll(name, missing));
  }

  // Of a rank that is accepted: whether this row is shown. What is not in the rank's own texts has to be in the row's
  // name.
  acceptsRow(stream: Stream, instanceLabel: string, rowName: string): boolean {
    if (!this.words.length && !this.without.length) return true;
    const own = ownText(stream, instanceLabel), name = rowName.toLowerCase();
    return !this.without.some(word => name.includes(word)) &&
        matchesAll(rowName, this.words.filter(word => !own.includes(word)));
  }
}

function ownText(stream: Stream, instanceLabel: string): string {
  return [stream.label, stream.process, stream.job, stream.kind, instanceLabel].join(' ').toLowerCase();
}

function matchesAll(name: string, words: string[]): boolean {
  const text = name.toLowerCase();
  return words.every(word => text.includes(word));
}
