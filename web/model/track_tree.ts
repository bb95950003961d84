// SPDX-License-Identifier: Apache-2.0
import {CaptureLayout, Stream} from './capture_layout';
import {RowFilter} from './row_filter';
import {SpanTile} from './span_tile';
import {commonRowName, Grouping, kSectionNames, ownRowName, sectionLabel, sectionOf} from './track_kinds';
import {TrackList} from './track_list';

export interface KnownRow {
  row: number;  // -1: it is taken to exist, because other ranks have it
  name: string;
  source: string;
  order: number;
  depth: number;  // the most that any answer had, so that the tree does not jump while a person zooms
  unit: string;
  max: number;
  section: string;
  common: string;  // the part of the name that is the same on all ranks
}

// One line of the tree and its strip on the canvas. Heights are in units of one nesting level.
export interface Track {
  kind: 'group'|'rank'|'section'|'row';
  key: string;
  label: string;
  level: number;     // from 1
  instance: number;  // index; -1 if the line is not of one
  stream: number;    // its number; -1 for groups
  row: KnownRow|null;
  section: string;  // of a section
  expanded: boolean;
  pinned: boolean;
  block: number;  // in the tree's list; -1 if it is pinned
  top: number;    // in its block, or among the pinned lines
  units: number;
  count: number;  // of a group: its ranks, or its rows where rows are grouped
}

interface Header {
  key: string;
  label: string;
  instance: number;
}

// Rows of one kind or name of all ranks.
interface RowGroup {
  header: Header;
  track: Track;
}

const kCounterUnits = 2;

// Whether spans are drawn beside the line; others are headers.
export function showsSpans(track: Track): boolean {
  return track.kind === 'row' || (track.kind === 'rank' && !track.expanded);
}

// The name of a row in sets and in the URL.
export function rowKey(stream: number, row: number): string {
  return `${stream}.${row}`;
}

// Which lines there are and where: groups > ranks > sections > rows, with what a person collapsed, hid, pinned and
// filtered. Streams and rows are named by their numbers, which stay the same while a capture grows.
export class TrackTree {
  readonly rowsOf = new Map<number, KnownRow[]>();
  readonly expanded = new Set<number>();    // streams
  readonly collapsed = new Set<string>();   // keys of groups
  readonly pinned = new Set<number>();      // streams
  readonly hidden = new Set<number>();      // streams
  readonly pinnedRows = new Set<string>();  // rowKey
  readonly hiddenRows = new Set<string>();
  readonly closedSections = new Set<string>();   // on all ranks
  readonly flippedSections = new Set<string>();  // "stream/section": otherwise than on all ranks
  grouping: Grouping = 'instance';
  filter = new RowFilter('');
  list = new TrackList();
  pinnedTracks: Track[] = [];
  touched = 0;  // lines that the last build or rebuild made or placed
  pinnedUnits = 0;
  shownStreams = 0;
  private readonly allRowNames = new Set<string>();
  private readonly samples = new Map<string, KnownRow>();   // a row of each common name, by kind of stream
  private readonly linesOf = new Map<number, Track[]>();    // a stream's lines
  private readonly changed = new Set<number>();             // streams whose rows are other than those of linesOf
  private readonly blocksOf = new Map<number, number[]>();  // of a stream in `list`
  private rowGroups: RowGroup[] = [];                       // while rows are grouped
  private flat: Track[]|null = null;                        // of `list`
  private builtFor: CaptureLayout|null = null;
  private samplesPlaced = 0;
  private ordered: {stream: Stream, path: Header[]}[] = [];
  private orderedFor: {layout: CaptureLayout, grouping: Grouping}|null = null;

  constructor(public layout: CaptureLayout) {}

  get groupsRows(): boolean {
    return this.grouping === 'kind' || this.grouping === 'name';
  }

  // Remembers the rows of an answer. Returns whether the tree has to be built again.
  learnRows(tile: SpanTile): boolean {
    let changed = false;
    for (const {stream, row, name, source, order, depth, unit, max} of tile.rows) {
      let rows = this.rowsOf.get(stream);
      if (!rows) this.rowsOf.set(stream, rows = []);
      const known = rows.find(other => other.row === row);
      const isShown = this.expanded.has(stream) || this.groupsRows || this.pinnedRows.has(rowKey(stream, row));
      if (!known) {
        const made: KnownRow =
            {row, name, source, order, depth, unit, max, section: sectionOf(source, name), common: commonRowName(name)};
        rows.push(made);
        this.allRowNames.add(name);
        const kind = this.layout.stream(stream)?.kind ?? '',
              sample = `${kind}\u0000${made.section}\u0000${made.common}`;
        if (!this.samples.has(sample)) this.samples.set(sample, {...made, row: -1});
        rows.sort((a, b) => a.order - b.order || a.row - b.row);
        changed = changed || isShown || !this.filter.isEmpty;
        this.changed.add(stream);
        continue;
      }
      known.max = Math.max(known.max, max);
      if (depth > known.depth) {
        known.depth = depth;
        changed = changed || isShown;
        this.changed.add(stream);
      }
    }
    return changed;
  }

  // All lines but the pinned ones, in order. An array of its own, which is made again after each change.
  get tracks(): readonly Track[] {
    return this.flat ??= this.list.flat();
  }

  get units(): number {
    return this.list.units;
  }

  // Where a line begins, among the pinned ones or the others.
  topOf(track: Track): number {
    return track.block < 0 ? track.top : this.list.unitsBefore(track.block) + track.top;
  }

  // Builds everything again, after a person or the layout changed something.
  build(): void {
    this.linesOf.clear();
    this.buildAll();
  }

  // After learnRows: replaces the lines of the streams whose rows are other ones, and leaves all others as they are.
  rebuild(): void {
    if (!this.canPatch()) return this.buildAll();
    this.touched = 0;
    for (const stream of this.changed) this.patch(stream);
    this.changed.clear();
    this.flat = null;
  }

  // Else what a stream shows depends on more than its own rows.
  private canPatch(): boolean {
    const {pinned, pinnedRows, filter, samples} = this;
    return this.builtFor === this.layout && pinned.size + pinnedRows.size === 0 && filter.isEmpty &&
        (!this.groupsRows || (this.rowGroups.length > 0 && this.samplesPlaced === samples.size));
  }

  private patch(number: number): void {
    const stream = this.layout.stream(number), blocks = this.blocksOf.get(number), old = this.linesOf.get(number);
    if (!stream || !blocks || !old) {
      this.linesOf.delete(number);
      return;
    }
    if (!this.groupsRows) return this.replace(number, blocks[0], this.makeLines(stream, old[0].level, false));
    const lines = this.makeRows(stream);
    this.linesOf.set(number, lines);
    this.rowGroups.forEach((group, i) => {
      const own = lines.filter(line => this.groupKey(line.row!) === group.header.key);
      group.track.count += own.length - old.filter(line => this.groupKey(line.row!) === group.header.key).length;
      if (group.track.expanded && (own.length > 0 || this.list.lines(blocks[i]).length > 0))
        this.replace(number, blocks[i], own, false);
    });
  }

  private replace(number: number, block: number, lines: Track[], isWhole = true): void {
    if (isWhole) this.linesOf.set(number, lines);
    this.list.replace(block, lines);
    this.touched += lines.length;
  }

  private buildAll(): void {
    for (const stream of this.changed) this.linesOf.delete(stream);
    this.changed.clear();
    this.blocksOf.clear();
    this.rowGroups = [];
    this.pinnedTracks = [];
    this.shownStreams = 0;
    this.order();
    const blocks: Track[][] = [];
    if (this.groupsRows && this.samples.size > 0)
      this.buildByRow(blocks);
    else
      this.buildByStream(blocks);
    this.list = new TrackList(blocks);
    this.flat = null;
    this.builtFor = this.layout;
    this.pinnedUnits = place(this.pinnedTracks);
    this.touched = this.list.length + this.pinnedTracks.length;
  }

  private buildByStream(blocks: Track[][]): void {
    const open: (Track|null)[] = [];  // the current header of each level
    for (const {stream, path} of this.ordered) {
      if (!this.accepts(stream)) continue;
      this.addPinnedRows(stream);
      if (this.pinned.has(stream.number)) {
        this.addLines(this.pinnedTracks, this.makeLines(stream, 1, true));
        continue;
      }
      let isOpen = true;
      for (let level = 0; level < path.length && isOpen; ++level) {
        let header = open[level] ?? null;
        if (header?.key !== path[level].key) {
          header = this.makeHeader(path[level], level + 1);
          open[level] = header;
          open.length = level + 1;
          blocks.push([header]);
        }
        ++header.count;
        isOpen = header.expanded;
      }
      if (!isOpen) continue;
      this.blocksOf.set(stream.number, [blocks.length]);
      blocks.push(this.lines(stream, path.length + 1));
    }
  }

  // Rows of all ranks together, by kind or by name.
  private buildByRow(blocks: Track[][]): void {
    const groups = new Map<string, {header: Header, sample: KnownRow, lines: Map<number, Track[]>, count: number}>();
    const isByKind = this.grouping === 'kind', shown: number[] = [];
    // Ranks that are not loaded are taken to have the rows of others, and those may have new ones.
    if (this.samplesPlaced !== this.samples.size) this.linesOf.clear();
    this.samplesPlaced = this.samples.size;
    for (const {stream} of this.ordered) {
      if (!this.accepts(stream)) continue;
      this.addPinnedRows(stream);
      if (this.pinned.has(stream.number)) {
        this.addLines(this.pinnedTracks, this.makeLines(stream, 1, true));
        continue;
      }
      let lines = this.linesOf.get(stream.number);
      if (!lines) this.linesOf.set(stream.number, lines = this.makeRows(stream));
      shown.push(stream.number);
      for (const line of lines) {
        const row = line.row!, key = this.groupKey(row);
        let group = groups.get(key);
        if (!group) {
          const header = {key, label: isByKind ? sectionLabel(row.section) : row.common, instance: -1};
          groups.set(key, group = {header, sample: row, lines: new Map(), count: 0});
        }
        const own = group.lines.get(stream.number);
        if (own)
          own.push(line);
        else
          group.lines.set(stream.number, [line]);
        ++group.count;
      }
    }
    const place = ({sample}: {sample: KnownRow}): number =>
        kSectionNames.findIndex(([name]) => name === sample.section);
    const sorted = [...groups.values()].sort(
        (a, b) => place(a) - place(b) || a.sample.order - b.sample.order || (a.header.label < b.header.label ? -1 : 1));
    for (const stream of shown) this.blocksOf.set(stream, []);
    for (const {header, lines, count} of sorted) {
      const track = this.makeHeader(header, 1);
      track.count = count;
      this.rowGroups.push({header, track});
      blocks.push([track]);
      for (const stream of shown) {
        this.blocksOf.get(stream)!.push(track.expanded ? blocks.length : -1);
        if (track.expanded) blocks.push(lines.get(stream) ?? []);
      }
    }
  }

  private groupKey(row: KnownRow): string {
    return this.grouping === 'kind' ? `k${row.section}` : `n${row.section}:${row.common}`;
  }

  // The rows of a stream as lines of their own. A rank whose rows are not known yet is taken to have those of the
  // others of its kind.
  private makeRows(stream: Stream): Track[] {
    const label = this.layout.instances[stream.instance]?.label ?? '', made: Track[] = [];
    const rows = this.rowsOf.get(stream.number) ??
        [...this.samples].filter(([key]) => key.startsWith(`${stream.kind}\u0000`)).map(([, sample]) => sample);
    for (const row of rows) {
      const own = rowKey(stream.number, row.row);
      if (!this.hiddenRows.has(own) && !this.pinnedRows.has(own) && this.filter.acceptsRow(stream, label, row.name))
        made.push(this.makeRow(stream, row, 2, true, false));
    }
    return made;
  }

  private accepts(stream: Stream): boolean {
    const {filter, layout} = this;
    if (this.hidden.has(stream.number)) return false;
    if (!filter.isEmpty) {
      const label = layout.instances[stream.instance]?.label ?? '';
      if (!filter.accepts(stream, label, this.rowNamesOf(stream.number))) return false;
    }
    ++this.shownStreams;
    return true;
  }

  // Which rows a rank has is known once it was on the screen; until then it is taken to have those of the others.
  private rowNamesOf(stream: number): string[]|null {
    const rows = this.rowsOf.get(stream);
    if (rows) return rows.map(row => row.name);
    return this.allRowNames.size > 0 ? [...this.allRowNames] : null;
  }

  // Streams in the order of display, each with its groups. Kept until the layout or the grouping changes.
  private order(): void {
    const {layout, grouping} = this;
    if (this.orderedFor?.layout === layout && this.orderedFor.grouping === grouping) return;
    this.orderedFor = {layout, grouping};
    const headers = new Map<string, Header>(), ordinals = new Map<string, number>();
    const header = (key: string, label: string, instance: number): Header => {
      let made = headers.get(key);
      if (!made) {
        headers.set(key, made = {key, label, instance});
        ordinals.set(key, ordinals.size);
      }
      return made;
    };
    const shared = sharedProcesses(layout.streams);
    const entries = layout.streams.map((stream, index) => {
      const path = this.pathOf(stream, shared, header);
      const places = path.map(({key}) => key.endsWith(':-') ? Infinity : ordinals.get(key)!);
      return {stream, path, index, places};
    });
    const rankOf = (stream: Stream): number => stream.gid ?? Infinity;
    if (grouping !== 'instance') {
      const coreOf = (stream: Stream): number => grouping === 'core' ? stream.core ?? Infinity : 0;
      entries.sort(
          (a, b) => compare(coreOf(a.stream), coreOf(b.stream)) || compare(a.places[0] ?? -1, b.places[0] ?? -1) ||
              compare(rankOf(a.stream), rankOf(b.stream)) || a.index - b.index);
    } else if (shared.size > 0) {
      entries.sort(
          (a, b) => compare(a.places[0], b.places[0]) || compare(a.places[1] ?? Infinity, b.places[1] ?? Infinity) ||
              a.index - b.index);
    }
    this.ordered = entries;
  }

  private pathOf(stream: Stream, shared: Set<string>, header: (key: string, label: string, instance: number) => Header):
      Header[] {
    const {instance, process} = stream, name = this.layout.instances[instance]?.label ?? `instance ${instance}`;
    switch (this.grouping) {
      case 'instance': {
        const own = header(`i${instance}`, name, instance);
        return shared.has(processKey(stream)) ? [own, header(`p${processKey(stream)}`, process, instance)] : [own];
      }
      case 'process':
        return [
          process ? header(`p${processKey(stream)}`, `${name} ${process}`, instance)
                  : header('p:-', 'Without a process', -1)
        ];
      case 'job':
        return [stream.job ? header(`j:${stream.job}`, stream.job, -1) : header('j:-', 'Without a job', -1)];
      case 'core':
        return [
          stream.core !== null ? header(`c${stream.core}`, `nc ${stream.core}`, -1)
                               : header('c:-', 'Without a core', -1)
        ];
      case 'rank':
        return stream.gid !== null ? [] : [header('r:-', 'Without a rank', -1)];
      default:
        return [];
    }
  }

  private makeHeader({key, label, instance}: Header, level: number): Track {
    return makeTrack('group', key, label, level, instance, -1, {expanded: !this.collapsed.has(key)});
  }

  private lines(stream: Stream, level: number): Track[] {
    let lines = this.linesOf.get(stream.number);
    if (!lines) this.linesOf.set(stream.number, lines = this.makeLines(stream, level, false));
    return lines;
  }

  // A rank and, if it is open, its sections and rows. Without rows of two kinds there are no sections.
  private makeLines(stream: Stream, level: number, pinned: boolean): Track[] {
    const {number, instance} = stream, expanded = this.expanded.has(number);
    const lines = [makeTrack('rank', `s${number}`, stream.label, level, instance, number, {expanded, pinned})];
    if (!expanded) return lines;
    const label = this.layout.instances[instance]?.label ?? '';
    const rows = (this.rowsOf.get(number) ?? []).filter(row => {
      const key = rowKey(number, row.row);
      return !this.hiddenRows.has(key) && (pinned || !this.pinnedRows.has(key)) &&
          this.filter.acceptsRow(stream, label, row.name);
    });
    const hasSections = rows.some(row => row.section !== rows[0].section);
    for (const [section, title] of kSectionNames) {
      const own = rows.filter(row => row.section === section),
            isOpen = !hasSections || this.isSectionOpen(number, section);
      if (own.length === 0) continue;
      if (hasSections) {
        lines.push(makeTrack(
            'section', `k${number}/${section}`, title, level + 1, instance, number,
            {expanded: isOpen, pinned, section, count: own.length}));
      }
      if (isOpen)
        for (const row of own) lines.push(this.makeRow(stream, row, level + (hasSections ? 2 : 1), false, pinned));
    }
    return lines;
  }

  // `alone`: the line is not below its rank's.
  private makeRow(stream: Stream, row: KnownRow, level: number, alone: boolean, pinned: boolean): Track {
    const own = ownRowName(row.name), label = alone ? (row.row < 0 ? stream.label : `${stream.label} · ${own}`) : own;
    const key = `r${stream.number}.${row.row < 0 ? row.section + row.common : row.row}`;
    return makeTrack(
        'row', key, label, level, stream.instance, stream.number,
        {row, pinned, units: row.source === 'counter' ? kCounterUnits : row.depth});
  }

  private addPinnedRows(stream: Stream): void {
    if (this.pinnedRows.size === 0 || this.pinned.has(stream.number)) return;
    const rows = this.rowsOf.get(stream.number);
    for (const key of this.pinnedRows) {
      if (!key.startsWith(`${stream.number}.`)) continue;
      const number = Number(key.slice(key.indexOf('.') + 1)),
            row = rows?.find(other => other.row === number) ?? unknownRow(number);
      if (!this.hiddenRows.has(key)) this.pinnedTracks.push(this.makeRow(stream, row, 1, true, true));
    }
  }

  private addLines(into: Track[], lines: Track[]): void {
    for (let i = 0; i < lines.length; ++i) into.push(lines[i]);
  }

  isSectionOpen(stream: number, section: string): boolean {
    return this.closedSections.has(section) === this.flippedSections.has(`${stream}/${section}`);
  }

  toggleSection(stream: number, section: string): void {
    toggle(this.flippedSections, `${stream}/${section}`);
  }

  // Opens or closes a section on all ranks.
  setSection(section: string, open: boolean): void {
    if (open)
      this.closedSections.delete(section);
    else
      this.closedSections.add(section);
    for (const key of [...this.flippedSections])
      if (key.endsWith(`/${section}`)) this.flippedSections.delete(key);
  }

  // The streams of a group's ranks, whether it is open or not.
  streamsOf(group: Track): number[] {
    return this.ordered.filter(({path}) => path.some(header => header.key === group.key))
        .map(({stream}) => stream.number);
  }

  // Makes a row visible: shows its rank and it, and opens the groups and the section that they are in.
  reveal(stream: number, row: number): void {
    this.hidden.delete(stream);
    this.hiddenRows.delete(rowKey(stream, row));
    this.order();
    for (const {key} of this.ordered.find(entry => entry.stream.number === stream)?.path ?? [])
      this.collapsed.delete(key);
    const known = this.rowsOf.get(stream)?.find(other => other.row === row);
    if (!known) return;
    this.collapsed.delete(`k${known.section}`);
    this.collapsed.delete(`n${known.section}:${known.common}`);
    if (!this.isSectionOpen(stream, known.section)) this.toggleSection(stream, known.section);
  }

  // The index in `tracks` of the one at this unit.
  trackAt(unit: number): number {
    const {block, line} = this.list.at(unit);
    return this.list.lengthBefore(block) + line;
  }

  find(stream: number, row: number): Track|undefined {
    const isRow = (track: Track): boolean => track.kind === 'row' && track.stream === stream && track.row?.row === row;
    const isRank = (track: Track): boolean => track.kind === 'rank' && track.stream === stream;
    const own = (this.blocksOf.get(stream) ?? []).flatMap(block => [...this.list.lines(block)]);
    return this.pinnedTracks.find(isRow) ?? own.find(isRow) ?? this.pinnedTracks.find(isRank) ?? own.find(isRank);
  }
}

export function toggle<T>(set: Set<T>, value: T): void {
  if (!set.delete(value)) set.add(value);
}

function makeTrack(
    kind: Track['kind'], key: string, label: string, level: number, instance: number, stream: number,
    rest: Partial<Track>): Track {
  return {
    kind,
    key,
    label,
    level,
    instance,
    stream,
    row: null,
    section: '',
    expanded: false,
    pinned: false,
    block: -1,
    top: 0,
    units: 1,
    count: 0,
    ...rest
  };
}

// A pinned row of a link, until an answer describes it.
function unknownRow(row: number): KnownRow {
  return {row, name: `row ${row}`, source: '', order: 0, depth: 1, unit: '', max: 0, section: 'runtime', common: ''};
}

function processKey(stream: Stream): string {
  return `${stream.instance}:${stream.process}`;
}

// Processes that have a line of their own: those of instances with several, unless each has one stream only, which
// would double the lines without telling more.
function sharedProcesses(streams: Stream[]): Set<string> {
  const counts = new Map<string, number>(), processes = new Map<number, number>(), most = new Map<number, number>();
  for (const stream of streams) {
    if (!stream.process || stream.kind === 'host') continue;
    const count = (counts.get(processKey(stream)) ?? 0) + 1;
    counts.set(processKey(stream), count);
    if (count === 1) processes.set(stream.instance, (processes.get(stream.instance) ?? 0) + 1);
    most.set(stream.instance, Math.max(most.get(stream.instance) ?? 0, count));
  }
  const shared = new Set<string>();
  for (const stream of streams) {
    if (counts.has(processKey(stream)) && stream.kind !== 'host' && processes.get(stream.instance)! > 1 &&
        most.get(stream.instance)! > 1)
      shared.add(processKey(stream));
  }
  return shared;
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

function place(tracks: Track[]): number {
  let top = 0;
  for (const track of tracks) {
    track.top = top;
    top += track.units;
  }
  return top;
}
