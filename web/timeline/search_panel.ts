// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {Hit, SearchReply} from '../api/api_types';
import {parseQuery} from '../model/query';
import {formatCount, formatDuration, formatMoment} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {DataTable} from '../widgets/data_table';
import {button, element, iconButton, notice, replaceChildren} from '../widgets/dom';

import {Panel} from './dock';
import {TimelineHost} from './timeline_host';

const kHitsMax = 1000;

// The search over the whole capture: its box at the top of the page, and the list of hits.
export class SearchPanel implements Panel {
  readonly name = 'search';
  readonly title = 'Search';
  readonly element = element('div', {class: 'panel'});
  readonly input = element('input', {
    type: 'search',
    class: 'search-input',
    placeholder: 'Search: words dur>10ms rank:13',
    'aria-label': 'Search all events',
    spellcheck: 'false',
    autocomplete: 'off',
    maxlength: 500
  });
  readonly box = element('div', {class: 'search-box', role: 'search'});
  private readonly count = element('span', {class: 'search-count', role: 'status'});
  private abort: AbortController|null = null;
  private asked = '';

  constructor(private readonly host: TimelineHost) {
    this.input.addEventListener('keydown', event => {
      if (event.key === 'Enter') this.enter(event.shiftKey ? -1 : 1);
      if (event.key !== 'Escape') return;
      // Chromium would empty the box, and with it the search.
      event.preventDefault();
      this.input.blur();
    });
    this.input.addEventListener('search', () => {
      if (!this.input.value) this.search('');
    });
    this.box.append(
        this.input, this.count, iconButton('up', 'Previous hit (N)', () => this.step(-1)),
        iconButton('down', 'Next hit (n)', () => this.step(1)));
    this.showEmpty();
  }

  update(): void {
    // The list changes only with the query.
  }

  // `isRestored`: the query comes from the URL, which names the open panel too.
  search(query: string, isRestored = false): void {
    const {state} = this.host, text = query.trim();
    this.input.value = query;
    this.abort?.abort();
    this.asked = text;
    state.query = text;
    state.hits = [];
    state.density = [];
    state.hit = -1;
    this.count.textContent = '';
    this.host.viewChanged();
    if (!text) return this.showEmpty();
    const {problem} = parseQuery(text);
    if (problem) {
      replaceChildren(this.element, notice('error', problem));
      return this.host.openPanel(this.name);
    }
    void this.load(text, isRestored);
  }

  step(by: number): void {
    const {state} = this.host, n = state.hits.length;
    if (n === 0) return;
    // The first step goes to the first hit in or after the window.
    const next = state.hit >= 0
        ? (state.hit + by + n) % n
        : Math.max(0, state.hits.findIndex(hit => state.base.relative(hit.start_ns) >= state.viewport.from));
    this.go(next);
  }

  private enter(step: number): void {
    if (this.input.value.trim() === this.asked && this.host.state.hits.length)
      this.step(step);
    else
      this.search(this.input.value);
  }

  private async load(text: string, isRestored: boolean): Promise<void> {
    const {state, api} = this.host, {base, layout} = state, abort = this.abort = new AbortController();
    replaceChildren(this.element, notice('loading', `Searching for ${text}`));
    this.count.textContent = '…';
    try {
      const reply = await api.search(
          state.captureId,
          {q: text, from: base.absolute(layout.begin), to: base.absolute(layout.end + 1), limit: kHitsMax},
          abort.signal);
      if (this.asked !== text) return;
      state.hits = [...reply.hits].sort((a, b) => base.relative(a.start_ns) - base.relative(b.start_ns));
      state.density = reply.density ?? [];
      this.show(reply, text);
      if (!isRestored) this.host.openPanel(this.name);
      this.host.viewChanged();
    } catch (error) {
      if (isAbort(error)) return;
      const {message, hint} = describeError(error);
      this.count.textContent = '';
      replaceChildren(
          this.element,
          notice('error', `The search failed: ${message}`, hint, button('Try again', () => this.search(text))));
      this.host.openPanel(this.name);
    }
  }

  private show(reply: SearchReply, text: string): void {
    const {state} = this.host, total = parseCount(reply.total), least = reply.complete ? '' : 'at least ';
    const digested = reply.digested_chunks ?? 0, shiftNs = parseCount(reply.shift_ns);
    this.count.textContent = `${least}${formatCount(total)}`;
    const table = new DataTable<Hit>(
        [
          {title: 'Name', value: hit => hit.name, style: 'wide'},
          {title: 'Rank', value: hit => state.streamLabel(hit.stream)},
          {title: 'Row', value: hit => hit.row_name ?? state.rowLabel(hit.stream, hit.row)},
          {
            title: 'Begin',
            numeric: true,
            value: hit => state.base.relative(hit.start_ns),
            show: hit => formatMoment(state.base.relative(hit.start_ns))
          },
          {
            title: 'Duration',
            numeric: true,
            value: hit => parseCount(hit.duration_ns),
            show: hit => formatDuration(parseCount(hit.duration_ns))
          },
        ],
        'Hits', 3, false, hit => this.go(state.hits.indexOf(hit)), kHitsMax);
    table.show(state.hits);
    const head = element(
        'div', {class: 'panel-head'}, element('strong', {}, `${least}${formatCount(total)} events`),
        element(
            'span', {class: 'faint'},
            `on ${formatCount(reply.ranks)} ranks, in ${
                digested > 0 ? `${formatCount(digested)} digested chunks and `
                             : ''}${formatCount(reply.scanned_chunks)} chunks${digested > 0 ? ' that were read' : ''}`),
        shiftNs > 0 &&
            element(
                'span', {class: 'faint'},
                `on the overview up to ${formatDuration(shiftNs)} from their place, in the list exact`),
        total > state.hits.length &&
            element(
                'span', {class: 'faint'},
                `the first ${formatCount(state.hits.length)} are listed; narrow the search to see others`));
    replaceChildren(
        this.element, head,
        total > 0
            ? table.element
            : notice(
                  'empty', `No event matches ${text}`,
                  'All words must occur in an event’s name or arguments. Fewer words find more; name:… is exact.'));
  }

  private go(index: number): void {
    const {state} = this.host, hit = state.hits[index];
    if (!hit) return;
    state.hit = index;
    this.count.textContent = `${index + 1} / ${formatCount(state.hits.length)}`;
    const from = state.base.relative(hit.start_ns), to = from + parseCount(hit.duration_ns);
    this.host.chooseSpan({
      stream: hit.stream,
      row: hit.row,
      name: hit.name,
      category: '',
      from,
      to,
      count: 1,
      flags: 0,
      depth: 0,
      id: hit.id
    });
    if (to - from < state.viewport.span / 400)
      state.viewport.show(from - (to - from) * 20 - 50, to + (to - from) * 20 + 50);
    this.host.reveal(hit.stream, hit.row, from, to);
    this.host.openPanel(this.name);
  }

  private showEmpty(): void {
    replaceChildren(
        this.element,
        notice(
            'empty', 'Search the whole capture',
            'Words of a name or argument, rank:13, rank:8-15, type:cc_running, name:exact, ' +
                'dur>10ms, dur<5us, core:5, arg:key=value, "two words", -without. ' +
                'Press / to type, n and N for the next and the previous hit.'));
  }
}
