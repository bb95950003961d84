// SPDX-License-Identifier: Apache-2.0
import {formatRanges, parseRanges} from './number_ranges';
import {Grouping, isGrouping, kSectionNames} from './track_kinds';

// A span that was picked with Ctrl, beside the chosen one.
export interface PickState {
  stream: number;
  row: number;
  ns: string;  // absolute
  duration: number;
  self: number;
  name: string;
}

export interface MarkerState {
  name: string;
  ns: string;  // absolute
}

// Everything that is seen on the timeline, as the URL's query has it. A link opens the same view for a colleague, so
// times are absolute and streams are named by number.
export interface ViewState {
  from: string;  // '': all
  to: string;
  open: number[];
  closedInstances: number[];
  pinned: number[];
  hidden: number[];
  grouping: Grouping;
  closedGroups: string[];     // keys, but instances'
  closedSections: string[];   // on all ranks
  flippedSections: string[];  // "stream/section": otherwise
  pinnedRows: string[];       // "stream.row"
  hiddenRows: string[];
  filter: string;
  query: string;
  span: {stream: number, row: number, ns: string, id?: string}|null;
  box: {from: string, to: string, streams: number[]}|null;
  picks: PickState[];
  tool: number;
  panel: string;
  metric: string;
  by: string;
  sort: string;
  markers: MarkerState[];
  why: string;  // of what verdicts are asked for: '' (not), "all", or "from.to"
  whyJob: string;
  verdict: number;  // the chosen one; -1: none
  bands: boolean;   // whether verdicts are drawn on the timeline
  follow: boolean;
  top: number;  // first visible unit
}

const kPanels = ['details', 'selection', 'search', 'why', 'heat', 'markers', 'table', ''];
const kMarkersMax = 100;
export const kPicksMax = 100;
// Of groups, sections and rows that are chosen one by one.
const kChosenMax = 200;

export function emptyViewState(): ViewState {
  return {
    from: '',
    to: '',
    open: [],
    closedInstances: [],
    pinned: [],
    hidden: [],
    grouping: 'instance',
    closedGroups: [],
    closedSections: [],
    flippedSections: [],
    pinnedRows: [],
    hiddenRows: [],
    filter: '',
    query: '',
    span: null,
    box: null,
    picks: [],
    tool: 1,
    panel: '',
    metric: 'busy',
    by: 'time',
    sort: 'rank',
    markers: [],
    why: '',
    whyJob: '',
    verdict: -1,
    bands: true,
    follow: false,
    top: 0
  };
}

export function formatViewState(state: ViewState): string {
  const out = new URLSearchParams();
  const put = (key: string, value: string): void => {
    if (value) out.set(key, value);
  };
  put('from', state.from);
  put('to', state.to);
  put('open', formatRanges(state.open));
  put('shut', formatRanges(state.closedInstances));
  put('pin', formatRanges(state.pinned));
  put('hide', formatRanges(state.hidden));
  if (state.grouping !== 'instance') put('group', state.grouping);
  for (const key of state.closedGroups.slice(0, kChosenMax)) out.append('fold', key);
  put('sections', state.closedSections.join(','));
  put('flip', state.flippedSections.slice(0, kChosenMax).join(','));
  put('pinrow', state.pinnedRows.slice(0, kChosenMax).join(','));
  put('hiderow', state.hiddenRows.slice(0, kChosenMax).join(','));
  put('filter', state.filter);
  put('q', state.query);
  if (state.span) {
    const {stream, row, ns, id} = state.span;
    put('span', `${stream}.${row}.${ns}${id ? '.' + id : ''}`);
  }
  if (state.box) put('box', `${state.box.from}.${state.box.to}.${formatRanges(state.box.streams)}`);
  for (const {stream, row, ns, duration, self, name} of state.picks)
    out.append('pick', `${stream}.${row}.${ns}.${Math.round(duration)}.${Math.round(self)}.${name.slice(0, 100)}`);
  if (state.tool !== 1) put('tool', String(state.tool));
  put('panel', state.panel);
  if (state.metric !== 'busy') put('metric', state.metric);
  if (state.by !== 'time') put('by', state.by);
  if (state.sort !== 'rank') put('sort', state.sort);
  for (const marker of state.markers) out.append('m', `${marker.ns}.${marker.name}`);
  put('why', state.why);
  put('whyjob', state.whyJob);
  if (state.verdict >= 0) put('verdict', String(state.verdict));
  if (!state.bands) put('bands', '0');
  if (state.follow) put('follow', '1');
  if (state.top > 0) put('top', String(state.top));
  return out.toString();
}

const kRow = /^\d{1,9}\.-?\d{1,16}$/;

function isSection(text: string): boolean {
  return kSectionNames.some(([name]) => name === text);
}

// Ignores what is malformed: a URL may come from anybody.
export function parseViewState(query: string): ViewState {
  const given = new URLSearchParams(query), state = emptyViewState();
  const text = (key: string): string => (given.get(key) ?? '').slice(0, 1000);
  const time = (value: string): string => /^\d{1,20}$/.test(value) ? value : '';
  state.from = time(text('from'));
  state.to = time(text('to'));
  state.open = parseRanges(given.get('open') ?? '');
  state.closedInstances = parseRanges(given.get('shut') ?? '');
  state.pinned = parseRanges(given.get('pin') ?? '');
  state.hidden = parseRanges(given.get('hide') ?? '');
  const group = text('group');
  if (isGrouping(group)) state.grouping = group;
  state.closedGroups = given.getAll('fold').slice(0, kChosenMax).map(key => key.slice(0, 300));
  state.closedSections = text('sections').split(',').filter(isSection);
  const list = (key: string, pattern: RegExp): string[] =>
      (given.get(key) ?? '').slice(0, 10000).split(',').filter(part => pattern.test(part)).slice(0, kChosenMax);
  state.flippedSections = list('flip', /^\d{1,9}\/[a-z]{1,20}$/).filter(part => isSection(part.split('/')[1]));
  state.pinnedRows = list('pinrow', kRow);
  state.hiddenRows = list('hiderow', kRow);
  state.filter = text('filter');
  state.query = text('q');
  const span = /^(\d{1,9})\.(-?\d{1,16})\.(\d{1,20})(?:\.(\d{1,10}-\d{1,20}-\d{1,10}))?$/.exec(text('span'));
  if (span) {
    state.span = {stream: Number(span[1]), row: Number(span[2]), ns: span[3]};
    if (span[4]) state.span.id = span[4];
  }
  const box = /^(\d{1,20})\.(\d{1,20})\.([\d,-]*)$/.exec(given.get('box') ?? '');
  if (box) state.box = {from: box[1], to: box[2], streams: parseRanges(box[3])};
  for (const entry of given.getAll('pick').slice(0, kPicksMax)) {
    const pick = /^(\d{1,9})\.(-?\d{1,16})\.(\d{1,20})\.(\d{1,18})\.(\d{1,18})\.([\s\S]{0,100})$/.exec(entry);
    if (!pick) continue;
    const [, stream, row, ns, duration, self, name] = pick;
    state.picks.push(
        {stream: Number(stream), row: Number(row), ns, duration: Number(duration), self: Number(self), name});
  }
  state.tool = Math.min(4, Math.max(1, Number(text('tool')) || 1));
  state.panel = kPanels.includes(text('panel')) ? text('panel') : '';
  state.metric = ['busy', 'events', 'wait', 'late', 'step'].includes(text('metric')) ? text('metric') : 'busy';
  state.by = text('by') === 'step' ? 'step' : 'time';
  state.sort = text('sort') === 'worst' ? 'worst' : 'rank';
  for (const entry of given.getAll('m').slice(0, kMarkersMax)) {
    const marker = /^(\d{1,20})\.([\s\S]{0,100})$/.exec(entry);
    if (marker) state.markers.push({ns: marker[1], name: marker[2]});
  }
  state.why = /^(all|\d{1,20}\.\d{1,20})$/.test(text('why')) ? text('why') : '';
  state.whyJob = text('whyjob');
  state.verdict = /^\d{1,4}$/.test(text('verdict')) ? Number(text('verdict')) : -1;
  state.bands = text('bands') !== '0';
  state.follow = text('follow') === '1';
  state.top = Math.max(0, Math.floor(Number(text('top')) || 0));
  return state;
}
