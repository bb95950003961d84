// SPDX-License-Identifier: Apache-2.0
import {CaptureLayout} from './capture_layout';
import {RowFilter} from './row_filter';
import {SpanTile} from './span_tile';

export interface KnownRow {
  row: number;
  name: string;
  source: string;
  order: number;
  depth: number;  // the most that any answer had, so that the tree does not jump while a person zooms
  unit: string;
  max: number;
}

// One line of the tree and its strip on the canvas. Heights are in units of one nesting level.
export interface Track {
  kind: 'instance'|'rank'|'row';
  key: string;
  instance: number;
  stream: number;  // its number; -1 for instances
  row: KnownRow|null;
  expanded: boolean;
  pinned: boolean;
  top: number;
  units: number;
  count: number;  // of an instance: its ranks that are shown
}

const kCounterUnits = 2;

// Which lines there are and where: instances > ranks > rows, with what a person collapsed, hid, pinned and filtered.
// Streams and rows are named by their numbers, which stay the same while a capture grows.
export class TrackTree {
  readonly rowsOf = new Map<number, KnownRow[]>();
  readonly expanded = new Set<number>();
  readonly collapsedInstances = new Set<number>();
  readonly pinned = new Set<number>();
  readonly hidden = new Set<number>();
  filter = new RowFilter('');
  private readonly allRowNames = new Set<string>();
  tracks: Track[] = [];
  pinnedTracks: Track[] = [];
  units = 0;
  pinnedUnits = 0;

  constructor(public layout: CaptureLayout) {}

  // Remembers the rows of an answer. Returns whether the tree has to be built again.
  learnRows(tile: SpanTile): boolean {
    let changed = false;
    for (const {stream, row, name, source, order, depth, unit, max} of tile.rows) {
      let rows = this.rowsOf.get(stream);
      if (!rows) this.rowsOf.set(stream, rows = []);
      const known = rows.find(other => other.row === row);
      if (!known) {
        rows.push({row, name, source, order, depth, unit, max});
        this.allRowNames.add(name);
        rows.sort((a, b) => a.order - b.order || a.row - b.row);
        changed = changed || this.expanded.has(stream) || !this.filter.isEmpty;
        continue;
      }
      known.max = Math.max(known.max, max);
      if (depth > known.depth) {
        known.depth = depth;
        changed = changed || this.expanded.has(stream);
      }
    }
    return changed;
  }

  build(): void {
    this.tracks = [];
    this.pinnedTracks = [];
    const {layout, filter} = this;
    let instance = -1, header: Track|null = null;
    for (const stream of layout.streams) {
      if (this.hidden.has(stream.number)) continue;
      const label = layout.instances[stream.instance]?.label ?? '';
      if (!filter.isEmpty && !filter.accepts(stream, label, this.rowNamesOf(stream.number))) continue;
      if (this.pinned.has(stream.number)) {
        this.addStream(this.pinnedTracks, stream.number, stream.instance, true);
        continue;
      }
      if (stream.instance !== instance || !header) {
        instance = stream.instance;
        header = {
          kind: 'instance',
          key: `i${instance}`,
          instance,
          stream: -1,
          row: null,
          pinned: false,
          top: 0,
          units: 1,
          expanded: !this.collapsedInstances.has(instance),
          count: 0
        };
        this.tracks.push(header);
      }
      ++header.count;
      if (header.expanded) this.addStream(this.tracks, stream.number, instance, false);
    }
    this.units = place(this.tracks);
    this.pinnedUnits = place(this.pinnedTracks);
  }

  // Which rows a rank has is known once it was on the screen; until then it is taken to have those of the others.
  private rowNamesOf(stream: number): string[]|null {
    const rows = this.rowsOf.get(stream);
    if (rows) return rows.map(row => row.name);
    return this.allRowNames.size > 0 ? [...this.allRowNames] : null;
  }

  private addStream(into: Track[], stream: number, instance: number, pinned: boolean): void {
    const expanded = this.expanded.has(stream);
    into.push(
        {kind: 'rank', key: `s${stream}`, instance, stream, row: null, expanded, pinned, top: 0, units: 1, count: 0});
    if (!expanded) return;
    const {layout, filter} = this, entry = layout.stream(stream), label = layout.instances[instance]?.label ?? '';
    for (const row of this.rowsOf.get(stream) ?? []) {
      if (entry && !filter.acceptsRow(entry, label, row.name)) continue;
      const units = row.source === 'counter' ? kCounterUnits : row.depth;
      into.push({
        kind: 'row',
        key: `r${stream}.${row.row}`,
        instance,
        stream,
        row,
        expanded: false,
        pinned,
        top: 0,
        units,
        count: 0
      });
    }
  }

  // The index of the track at this unit.
  trackAt(unit: number): number {
    let low = 0, high = this.tracks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tracks[middle].top <= unit)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  find(stream: number, row: number): Track|undefined {
    const all = this.pinned.has(stream) ? this.pinnedTracks : this.tracks;
    return all.find(track => track.kind === 'row' && track.stream === stream && track.row?.row === row) ??
        all.find(track => track.kind === 'rank' && track.stream === stream);
  }
}

function place(tracks: Track[]): number {
  let top = 0;
  for (const track of tracks) {
    track.top = top;
    top += track.units;
  }
  return top;
}
