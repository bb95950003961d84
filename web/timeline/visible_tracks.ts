// SPDX-License-Identifier: Apache-2.0
import {Track, TrackTree} from '../model/track_tree';

// The tracks on the screen: pinned ones at the top, then those that the person scrolled to. Arrays are reused.
export class VisibleTracks {
  readonly tracks: Track[] = [];
  readonly unit: number[] = [];   // of the screen, where each begins; the first scrolled one may begin above
  readonly index: number[] = [];  // in the tree, for screen readers
  count = 0;
  pinnedUnits = 0;

  update(tree: TrackTree, topUnit: number, units: number): void {
    this.count = 0;
    // Pinned tracks leave at least half of the screen for the others.
    const pinnedMax = Math.floor(units / 2);
    this.pinnedUnits = Math.min(tree.pinnedUnits, pinnedMax);
    for (let i = 0; i < tree.pinnedTracks.length; ++i) {
      const track = tree.pinnedTracks[i];
      if (track.top + track.units > pinnedMax) break;
      this.add(track, track.top, i);
    }
    const {list} = tree;
    if (list.length === 0) return;
    let {block, line} = list.at(topUnit);
    let top = list.unitsBefore(block) - topUnit + this.pinnedUnits,
        index = tree.pinnedTracks.length + list.lengthBefore(block) + line;
    for (; block < list.blockCount && top < units; ++block, line = 0) {
      const lines = list.lines(block);
      for (; line < lines.length && top + lines[line].top < units; ++line)
        this.add(lines[line], top + lines[line].top, index++);
      const last = lines[lines.length - 1];
      if (last) top += last.top + last.units;
    }
  }

  // The position of the track that covers this unit of the screen, or -1.
  at(unit: number): number {
    const isPinned = unit < this.pinnedUnits;
    for (let i = 0; i < this.count; ++i) {
      if (this.tracks[i].pinned === isPinned && unit >= this.unit[i] && unit < this.unit[i] + this.tracks[i].units)
        return i;
    }
    return -1;
  }

  private add(track: Track, unit: number, index: number): void {
    this.tracks[this.count] = track;
    this.unit[this.count] = unit;
    this.index[this.count] = index;
    ++this.count;
  }
}
