// SPDX-License-Identifier: Apache-2.0
import {SpanTile} from '../model/span_tile';
import {formatDuration, formatShortCount} from '../model/text_format';
import {Track} from '../model/track_tree';
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
  shown: string;  // what the line shows, so that unchanged lines are not touched
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
    const set = track.kind === 'instance' ? tree.collapsedInstances : tree.expanded;
    const key = track.kind === 'instance' ? track.instance : track.stream;
    if (set.has(key))
      set.delete(key);
    else
      set.add(key);
    this.host.tracksChanged();
  }

  private makeLine(): Line {
    const caret = element('span', {class: 'caret', 'aria-hidden': 'true'}),
          label = element('span', {class: 'tree-label'});
    const meta = element('span', {class: 'tree-meta'});
    const box = element(
        'div', {class: 'tree-line', role: 'treeitem', id: `tree-line-${this.lines.length}`}, caret, label, meta);
    const line: Line = {element: box, caret, label, meta, track: null, shown: ''};
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
    const isActive = track.key === this.active;
    const shown = [
      track.key, unit, track.units, track.expanded, track.pinned, isActive, mode, track.count, stream?.lost, index
    ].join('|');
    if (line.shown === shown && !line.element.hidden) return;
    line.shown = shown;
    const {element: box} = line;
    box.hidden = false;
    box.className = `tree-line ${track.kind}${isActive ? ' active' : ''}${track.pinned ? ' pinned' : ''}`;
    box.style.transform = `translateY(${unit * kUnit}px)`;
    box.style.height = `${track.units * kUnit}px`;
    box.setAttribute('aria-level', String(track.kind === 'instance' ? 1 : track.kind === 'rank' ? 2 : 3));
    box.setAttribute('aria-posinset', String(index + 1));
    box.setAttribute('aria-setsize', String(state.tree.pinnedTracks.length + state.tree.tracks.length));
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
    if (!line.track || line.track.kind === 'row') return this.tools.remove();
    this.pinButton.hidden = line.track.kind === 'instance';
    line.element.appendChild(this.tools);
  }

  private fillTexts(line: Line, track: Track, mode: string): void {
    const {state} = this.host;
    line.meta.className = 'tree-meta';
    if (track.kind === 'instance') {
      const instance = state.layout.instances[track.instance];
      line.label.textContent = instance?.label ?? `instance ${track.instance}`;
      line.meta.textContent = instance?.boundKnown ? `±${formatDuration(instance.boundNs)}` : 'clock not aligned';
      line.element.title = `${line.label.textContent}: ${track.count} ranks; times are within ${line.meta.textContent}`;
      return;
    }
    const stream = state.layout.stream(track.stream);
    if (!stream) return;
    if (track.kind === 'rank') {
      line.label.textContent = stream.label;
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
    // The rank is in the line above; a row's own part would be cut off behind it.
    line.label.textContent = track.row!.name.replace(/^gid\d+-nc\d+-/, '');
    line.meta.textContent = track.row!.source === 'counter' ? track.row!.unit : mode;
    line.element.title =
        `${track.row!.name} (${track.row!.source})` + (mode === 'bins' ? ': items stand for several events' : '');
  }

  private modeOf(track: Track, tileOf: {tileOf(stream: number): SpanTile|null}): string {
    const row = tileOf.tileOf(track.stream)?.byStream.get(track.stream)?.find(other => other.row === track.row?.row);
    return !row || row.isCounter ? '' : row.exact ? 'exact' : 'bins';
  }

  private pin(track: Track|null): void {
    if (!track || track.stream < 0) return;
    const {pinned} = this.host.state.tree;
    if (pinned.has(track.stream))
      pinned.delete(track.stream);
    else
      pinned.add(track.stream);
    this.host.tracksChanged();
  }

  private hide(track: Track|null): void {
    if (!track) return;
    const {tree, layout} = this.host.state;
    const hidden = track.kind === 'instance'
        ? layout.streams.filter(stream => stream.instance === track.instance).map(s => s.number)
        : [track.stream];
    hidden.forEach(stream => tree.hidden.add(stream));
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
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  }

  private leave(track: Track, all: Track[], at: number): void {
    if (track.kind !== 'row' && track.expanded) return this.toggle(track);
    const wanted = track.kind === 'row' ? 'rank' : 'instance';
    for (let i = at; i >= 0; --i)
      if (all[i].kind === wanted) return this.moveTo(all[i]);
  }

  private moveTo(track: Track): void {
    this.active = track.key;
    if (!track.pinned) this.scroll.showUnits(track.top, track.units);
    this.host.viewChanged();
  }
}
