// SPDX-License-Identifier: Apache-2.0
import {formatRanges, parseRanges} from './number_ranges';

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
  filter: string;
  query: string;
  span: {stream: number, row: number, ns: string, id?: string}|null;
  box: {from: string, to: string, streams: number[]}|null;
  tool: number;
  panel: string;
  metric: string;
  by: string;
  sort: string;
  markers: MarkerState[];
  follow: boolean;
  top: number;  // first visible unit
}

const kPanels = ['details', 'selection', 'search', 'heat', 'markers', 'table', ''];
const kMarkersMax = 100;

export function emptyViewState(): ViewState {
  return {
    from: '',
    to: '',
    open: [],
    closedInstances: [],
    pinned: [],
    hidden: [],
    filter: '',
    query: '',
    span: null,
    box: null,
    tool: 1,
    panel: '',
    metric: 'busy',
    by: 'time',
    sort: 'rank',
    markers: [],
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
  put('filter', state.filter);
  put('q', state.query);
  if (state.span) {
    const {stream, row, ns, id} = state.span;
    put('span', `${stream}.${row}.${ns}${id ? '.' + id : ''}`);
  }
  if (state.box) put('box', `${state.box.from}.${state.box.to}.${formatRanges(state.box.streams)}`);
  if (state.tool !== 1) put('tool', String(state.tool));
  put('panel', state.panel);
  if (state.metric !== 'busy') put('metric', state.metric);
  if (state.by !== 'time') put('by', state.by);
  if (state.sort !== 'rank') put('sort', state.sort);
  for (const marker of state.markers) out.append('m', `${marker.ns}.${marker.name}`);
  if (state.follow) put('follow', '1');
  if (state.top > 0) put('top', String(state.top));
  return out.toString();
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
  state.filter = text('filter');
  state.query = text('q');
  const span = /^(\d{1,9})\.(-?\d{1,16})\.(\d{1,20})(?:\.(\d{1,10}-\d{1,20}-\d{1,10}))?$/.exec(text('span'));
  if (span) {
    state.span = {stream: Number(span[1]), row: Number(span[2]), ns: span[3]};
    if (span[4]) state.span.id = span[4];
  }
  const box = /^(\d{1,20})\.(\d{1,20})\.([\d,-]*)$/.exec(given.get('box') ?? '');
  if (box) state.box = {from: box[1], to: box[2], streams: parseRanges(box[3])};
  state.tool = Math.min(4, Math.max(1, Number(text('tool')) || 1));
  state.panel = kPanels.includes(text('panel')) ? text('panel') : '';
  state.metric = ['busy', 'events', 'wait', 'late', 'step'].includes(text('metric')) ? text('metric') : 'busy';
  state.by = text('by') === 'step' ? 'step' : 'time';
  state.sort = text('sort') === 'worst' ? 'worst' : 'rank';
  for (const entry of given.getAll('m').slice(0, kMarkersMax)) {
    const marker = /^(\d{1,20})\.([\s\S]{0,100})$/.exec(entry);
    if (marker) state.markers.push({ns: marker[1], name: marker[2]});
  }
  state.follow = text('follow') === '1';
  state.top = Math.max(0, Math.floor(Number(text('top')) || 0));
  return state;
}
