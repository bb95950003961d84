// SPDX-License-Identifier: Apache-2.0
import {EventEntry, Hit, LinksReply} from '../api/api_types';
import {CaptureLayout} from '../model/capture_layout';
import {Insight} from '../model/insight';
import {NameTable} from '../model/name_table';
import {RowFilter} from '../model/row_filter';
import {TileStore} from '../model/tile_store';
import {TimeBase} from '../model/time_base';
import {TrackTree} from '../model/track_tree';
import {emptyViewState, ViewState} from '../model/view_state';
import {Viewport} from '../model/viewport';

import {Box, ChosenSpan, Marker, Pick} from './timeline_host';

const kTileBytesMax = 96 << 20;
// Captures of so few streams are shown with all rows at first.
const kExpandedAtFirst = 6;

// What is shown of one capture, and what a person chose. Panels read it; TimelinePage changes it and repaints.
export class TimelineState {
  base: TimeBase;
  readonly names = new NameTable();
  readonly store = new TileStore(kTileBytesMax);
  readonly tree: TrackTree;
  readonly viewport: Viewport;
  layout: CaptureLayout;
  tool = 1;
  panel = '';
  query = '';
  metric = 'busy';
  by = 'time';
  sort = 'rank';
  follow = false;
  span: ChosenSpan|null = null;
  event: EventEntry|null = null;           // the chosen span's, once it arrived
  links: LinksReply|null = null;           // its links, and the chain of what it depended on, or what depended on it
  chain: ''|'upstream'|'downstream' = '';  // which chain is asked for with the links
  box: Box|null = null;
  picks: Pick[] = [];  // spans that were added with Ctrl, the first of them included
  markers: Marker[] = [];
  hits: Hit[] = [];
  density: number[] = [];
  hit = -1;
  why = '';  // of what verdicts were asked for, as in the address
  whyJob = '';
  insight: Insight|null = null;  // the answer
  insightVersion = '';           // of the layout when it was asked for
  verdict = -1;                  // the chosen one
  bands = true;                  // whether verdicts are marked on the timeline

  constructor(readonly captureId: string, json: Record<string, unknown>) {
    this.base = new TimeBase(json.begin_ns);
    this.layout = new CaptureLayout(json, this.base);
    this.tree = new TrackTree(this.layout);
    this.viewport = new Viewport(this.layout.begin, this.layout.end);
    this.viewport.showAll();
  }

  // Whether there is a moment to count times from.
  get hasEvents(): boolean {
    return this.base.originNs !== 0n;
  }

  // Takes a newer layout of the same capture. The origin of time stays once there is one: with the first event.
  updateLayout(json: Record<string, unknown>): void {
    const isFirst = !this.hasEvents;
    if (isFirst) this.base = new TimeBase(json.begin_ns);
    this.layout = new CaptureLayout(json, this.base);
    this.tree.layout = this.layout;
    this.viewport.begin = this.layout.begin;
    this.viewport.end = this.layout.end;
    if (isFirst && this.hasEvents) this.viewport.showAll();
    if (this.insight) this.insight = new Insight(this.insight.report, this.layout, this.base);
  }

  restore(view: ViewState, isFresh: boolean): void {
    const {tree, base} = this;
    view.open.forEach(stream => tree.expanded.add(stream));
    tree.grouping = view.grouping;
    view.closedInstances.forEach(instance => tree.collapsed.add(`i${instance}`));
    view.closedGroups.forEach(key => tree.collapsed.add(key));
    view.closedSections.forEach(section => tree.closedSections.add(section));
    view.flippedSections.forEach(key => tree.flippedSections.add(key));
    view.pinnedRows.forEach(key => tree.pinnedRows.add(key));
    view.hiddenRows.forEach(key => tree.hiddenRows.add(key));
    view.pinned.forEach(stream => tree.pinned.add(stream));
    view.hidden.forEach(stream => tree.hidden.add(stream));
    tree.filter = new RowFilter(view.filter);
    if (isFresh && this.layout.streams.length <= kExpandedAtFirst)
      this.layout.streams.forEach(s => tree.expanded.add(s.number));
    this.tool = view.tool;
    this.panel = view.panel;
    this.query = view.query;
    this.metric = view.metric;
    this.by = view.by;
    this.sort = view.sort;
    this.follow = view.follow;
    this.why = view.why;
    this.whyJob = view.whyJob;
    this.verdict = view.verdict;
    this.bands = view.bands;
    this.markers = view.markers.map(marker => ({name: marker.name, time: base.relative(marker.ns)}));
    if (view.from && view.to && this.hasEvents) this.viewport.show(base.relative(view.from), base.relative(view.to));
    if (view.box)
      this.box = {from: base.relative(view.box.from), to: base.relative(view.box.to), streams: view.box.streams};
    this.picks = view.picks.map(
        ({stream, row, ns, duration, self, name}) => ({stream, row, name, from: base.relative(ns), duration, self}));
    if (view.span) {
      const time = base.relative(view.span.ns);
      this.span = {
        stream: view.span.stream,
        row: view.span.row,
        name: '',
        category: '',
        from: time,
        to: time,
        count: 1,
        flags: 0,
        depth: 0,
        id: view.span.id
      };
    }
  }

  toView(top: number): ViewState {
    const {tree, base, viewport, span, box} = this, instances = [...tree.collapsed].filter(key => /^i\d+$/.test(key));
    return {
      ...emptyViewState(),
      // Before the first event the window is of no time.
      from: this.hasEvents ? base.absolute(viewport.from) : '',
      to: this.hasEvents ? base.absolute(viewport.to) : '',
      open: [...tree.expanded],
      closedInstances: instances.map(key => Number(key.slice(1))),
      closedGroups: [...tree.collapsed].filter(key => !instances.includes(key)),
      grouping: tree.grouping,
      closedSections: [...tree.closedSections],
      flippedSections: [...tree.flippedSections],
      pinnedRows: [...tree.pinnedRows],
      hiddenRows: [...tree.hiddenRows],
      pinned: [...tree.pinned],
      hidden: [...tree.hidden],
      filter: tree.filter.text,
      query: this.query,
      tool: this.tool,
      panel: this.panel,
      metric: this.metric,
      by: this.by,
      sort: this.sort,
      why: this.why,
      whyJob: this.whyJob,
      verdict: this.verdict,
      bands: this.bands,
      follow: this.follow,
      top,
      markers: this.markers.map(marker => ({name: marker.name, ns: base.absolute(marker.time)})),
      span: span && {stream: span.stream, row: span.row, ns: base.absolute(span.from), id: span.id},
      picks: this.picks.map(
          ({stream, row, from, duration, self, name}) =>
              ({stream, row, ns: base.absolute(from), duration, self, name})),
      box: box && {from: base.absolute(box.from), to: base.absolute(box.to), streams: box.streams},
    };
  }

  streamLabel(number: number): string {
    return this.layout.stream(number)?.label ?? `stream ${number}`;
  }

  rowLabel(stream: number, row: number): string {
    return this.tree.rowsOf.get(stream)?.find(known => known.row === row)?.name ?? `row ${row}`;
  }
}
