// SPDX-License-Identifier: Apache-2.0
import {SpanTile} from '../model/span_tile';
import {formatDuration, formatShortCount} from '../model/text_format';
import {kSectionNames} from '../model/track_kinds';
import {rowKey, toggle, Track} from '../model/track_tree';
import {element, iconButton} from '../widgets/dom';

import {kUnit} from './painter';
import {TimelineHost} from './timeline_host';
import {VisibleTracks} from './visible_tracks';

interface Line {
  element: HTMLElement;
  caret: HTMLElement;
  label: HTMLElement;
  meta: HTMLElement;
  track: Track|null;
  shown: Shown;
}

// What a line shows, so that unchanged lines are not touched.
interface Shown {
  key: string;
  label: string;
  unit: number;
  units: number;
  expanded: boolean;
  pinned: boolean;
  active: boolean;
  mode: string;
  count: number;
  lost: number;
  index: number;
}

// What scrolls the tracks.
export interface TrackScroller {
  scrollByUnits(units: number): void;
  // Scrolls as little as shows these units.
  showUnits(top: number, units: number): void;
}

// The names to the left of the canvas. There are as many lines in the document as on the screen, however many ranks the
// capture has.
export class TreePanel {
  readonly element =
      element('div', {class: 'tree', role: 'tree', tabindex: '0', 'aria-label': 'Instances, ranks and rows'});
  private readonly lines: Line[] = [];
  private toolsLine: Line|null = null;
  private readonly pinButton =
      iconButton('pin', 'Pin to the top (p)', () => this.pin(this.toolsLine?.track ?? null), {tabindex: '-1'});
  private readonly tools = element(
      'span', {class: 'tree-tools'}, this.pinButton,
      iconButton('hide', 'Hide (h)', () => this.hide(this.toolsLine?.track ?? null), {tabindex: '-1'}));
  private active = '';  // key of the line that the keyboard is at

  constructor(private readonly host: TimelineHost, private readonly scroll: TrackScroller) {
    this.element.addEventListener('keydown', event => this.onKey(event));
    this.element.addEventListener('wheel', event => {
      event.preventDefault();
      this.scroll.scrollByUnits(Math.sign(event.deltaY) * 3);
    }, {passive: false});
  }

  update(visible: VisibleTracks, tileOf: {tileOf(stream: number): SpanTile|null}): void {
    while (this.lines.length < visible.count) this.lines.push(this.makeLine());
    let activeId = '';
    for (let i = 0; i < this.lines.length; ++i) {
      const line = this.lines[i];
      if (i >= visible.count) {
        line.element.hidden = true;
        line.track = null;
        continue;
      }
      const track = visible.tracks[i];
      line.track = track;
      this.fill(line, track, visible.unit[i], visible.index[i], track.kind === 'row' ? this.modeOf(track, tileOf) : '');
      if (track.key === this.active) activeId = line.element.id;
    }
    if (activeId)
      this.element.setAttribute('aria-activedescendant', activeId);
    else
      this.element.removeAttribute('aria-activedescendant');
  }

  toggle(track: Track): void {
    const {tree} = this.host.state;
    if (track.kind === 'row') return;
    if (track.kind === 'group')
      toggle(tree.collapsed, track.key);
    else if (track.kind === 'section')
      tree.toggleSection(track.stream, track.section);
    else
      toggle(tree.expanded, track.stream);
    this.host.tracksChanged();
  }

  private makeLine(): Line {
    const caret = element('span', {class: 'caret', 'aria-hidden': 'true'}),
          label = element('span', {class: 'tree-label'});
    const meta = element('span', {class: 'tree-meta'});
    const box = element(
        'div', {class: 'tree-line', role: 'treeitem', id: `tree-line-${this.lines.length}`}, caret, label, meta);
    const line: Line = {
      element: box,
      caret,
      label,
      meta,
      track: null,
      shown: {
        key: '',
        label: '',
        unit: 0,
        units: 0,
        expanded: false,
        pinned: false,
        active: false,
        mode: '',
        count: 0,
        lost: 0,
        index: -1
      }
    };
    box.addEventListener('pointerenter', () => this.showTools(line));
    line.element.addEventListener('click', event => {
      if (!line.track || (event.target as Element).closest('button')) return;
      this.active = line.track.key;
      this.toggle(line.track);
    });
    this.element.appendChild(line.element);
    return line;
  }

  private fill(line: Line, track: Track, unit: number, index: number, mode: string): void {
    const {state} = this.host, stream = track.stream >= 0 ? state.layout.stream(track.stream) : undefined;
    const isActive = track.key === this.active, lost = stream?.lost ?? 0, {shown} = line;
    if (shown.key === track.key && shown.label === track.label && shown.unit === unit && shown.units === track.units &&
        shown.expanded === track.expanded && shown.pinned === track.pinned && shown.active === isActive &&
        shown.mode === mode && shown.count === track.count && shown.lost === lost && shown.index === index &&
        !line.element.hidden)
      return;
    shown.key = track.key;
    shown.label = track.label;
    shown.unit = unit;
    shown.units = track.units;
    shown.expanded = track.expanded;
    shown.pinned = track.pinned;
    shown.active = isActive;
    shown.mode = mode;
    shown.count = track.count;
    shown.lost = lost;
    shown.index = index;
    const {element: box} = line;
    box.hidden = false;
    box.className = `tree-line ${track.kind}${isActive ? ' active' : ''}${track.pinned ? ' pinned' : ''}`;
    box.style.transform = `translateY(${unit * kUnit}px)`;
    box.style.height = `${track.units * kUnit}px`;
    box.style.paddingLeft = `${4 + 10 * (track.level - 1) + (track.kind === 'row' ? 6 : 0)}px`;
    box.setAttribute('aria-level', String(track.level));
    box.setAttribute('aria-posinset', String(index + 1));
    box.setAttribute('aria-setsize', String(state.tree.pinnedTracks.length + state.tree.list.length));
    if (track.kind === 'row')
      box.removeAttribute('aria-expanded');
    else
      box.setAttribute('aria-expanded', String(track.expanded));
    line.caret.textContent = track.kind === 'row' ? '' : track.expanded ? '▾' : '▸';
    this.fillTexts(line, track, mode);
  }

  // One set of buttons for all lines, at the one under the pointer.
  private showTools(line: Line): void {
    this.toolsLine = line;
    const {track} = line;
    if (!track || track.kind === 'section' || (track.kind === 'row' && track.row!.row < 0) ||
        (track.kind === 'group' && this.host.state.tree.groupsRows))
      return this.tools.remove();
    this.pinButton.hidden = track.kind === 'group';
    line.element.appendChild(this.tools);
  }

  private fillTexts(line: Line, track: Track, mode: string): void {
    const {state} = this.host;
    line.meta.className = 'tree-meta';
    line.label.textContent = track.label;
    if (track.kind === 'section' || (track.kind === 'group' && (track.instance < 0 || track.level > 1))) {
      line.meta.textContent = formatShortCount(track.count);
      line.element.title =
          `${track.label}: ${track.count} ${track.kind === 'section' || state.tree.groupsRows ? 'rows' : 'ranks'}`;
      return;
    }
    if (track.kind === 'group') {
      const instance = state.layout.instances[track.instance];
      line.meta.textContent = instance?.boundKnown ? `±${formatDuration(instance.boundNs)}` : 'clock not aligned';
      line.element.title = `${line.label.textContent}: ${track.count} ranks; times are within ${line.meta.textContent}`;
      return;
    }
    const stream = state.layout.stream(track.stream);
    if (!stream) return;
    if (track.kind === 'rank') {
      line.meta.textContent = stream.lost > 0 ? `${formatShortCount(stream.lost)} lost`
          : stream.ownTime ? 'own time'
                           : '';
      if (stream.lost > 0) line.meta.classList.add('bad');
      line.element.title =
          `${stream.label} · ${stream.process} · ${stream.job}\n${formatShortCount(stream.events)} events, ` +
          `${formatShortCount(stream.lost)} lost, times within ${
              stream.boundKnown ? '±' + formatDuration(stream.boundNs) : 'an unknown bound'}`;
      return;
    }
    line.meta.textContent = track.row!.source === 'counter' ? track.row!.unit
        : track.row!.row < 0                                ? 'not loaded'
                                                            : mode;
    line.element.title = `${stream.label} · ${track.row!.name} (${track.row!.source})` +
        (mode === 'bins' ? ': items stand for several events' : '');
  }

  private modeOf(track: Track, tileOf: {tileOf(stream: number): SpanTile|null}): string {
    const rows = tileOf.tileOf(track.stream)?.byStream.get(track.stream);
    let row = null;
    for (let i = 0; rows && i < rows.length; ++i)
      if (rows[i].row === track.row?.row) row = rows[i];
    return !row || row.isCounter ? '' : row.exact ? 'exact' : 'bins';
  }

  private pin(track: Track|null): void {
    const {tree} = this.host.state;
    if (track?.kind === 'rank')
      toggle(tree.pinned, track.stream);
    else if (track?.kind === 'row' && track.row!.row >= 0)
      toggle(tree.pinnedRows, rowKey(track.stream, track.row!.row));
    else
      return;
    this.host.tracksChanged();
  }

  private hide(track: Track|null): void {
    if (!track) return;
    const {tree} = this.host.state;
    if (track.kind === 'row' && track.row!.row >= 0)
      tree.hiddenRows.add(rowKey(track.stream, track.row!.row));
    else if (track.kind === 'rank')
      tree.hidden.add(track.stream);
    else if (track.kind === 'group' && !tree.groupsRows)
      tree.streamsOf(track).forEach(stream => tree.hidden.add(stream));
    else
      return;
    this.host.tracksChanged();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const {tree} = this.host.state, all = [...tree.pinnedTracks, ...tree.tracks];
    const at = Math.max(0, all.findIndex(track => track.key === this.active)), track = all[at];
    if (!track) return;
    if (event.key === 'ArrowDown')
      this.moveTo(all[Math.min(all.length - 1, this.active ? at + 1 : at)]);
    else if (event.key === 'ArrowUp')
      this.moveTo(all[Math.max(0, at - 1)]);
    else if (event.key === 'Home')
      this.moveTo(all[0]);
    else if (event.key === 'End')
      this.moveTo(all[all.length - 1]);
    else if (event.key === 'ArrowRight' && track.kind !== 'row')
      track.expanded ? this.moveTo(all[Math.min(all.length - 1, at + 1)]) : this.toggle(track);
    else if (event.key === 'ArrowLeft')
      this.leave(track, all, at);
    else if (event.key === 'Enter' || event.key === ' ')
      this.toggle(track);
    else if (event.key === 'p')
      this.pin(track);
    else if (event.key === 'h')
      this.hide(track);
    else if (event.key === 'c')
      this.toggleKind(track.kind === 'section' ? track.section : track.row?.section);
    else if (event.key === 'C')
      this.toggleKind(undefined);
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Collapses or expands a kind of rows on all ranks; without a kind, all kinds.
  private toggleKind(section: string|undefined): void {
    const {tree} = this.host.state, isOpen = !kSectionNames.every(([name]) => tree.closedSections.has(name));
    if (section === undefined)
      for (const [name] of kSectionNames) tree.setSection(name, !isOpen);
    else
      tree.setSection(section, tree.closedSections.has(section));
    this.host.tracksChanged();
  }

  private leave(track: Track, all: Track[], at: number): void {
    if (track.kind !== 'row' && track.expanded) return this.toggle(track);
    for (let i = at; i >= 0; --i)
      if (all[i].level < track.level) return this.moveTo(all[i]);
  }

  private moveTo(track: Track): void {
    this.active = track.key;
    if (!track.pinned) this.scroll.showUnits(this.host.state.tree.topOf(track), track.units);
    this.host.viewChanged();
  }
}
