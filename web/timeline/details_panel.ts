// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {EventEntry} from '../api/api_types';
import {nameTerm} from '../model/query';
import {kMerged} from '../model/span_tile';
import {formatCount, formatDuration, formatMoment, formatUtc} from '../model/text_format';
import {parseCount, parseInteger} from '../model/time_base';
import {button, element, notice, replaceChildren} from '../widgets/dom';

import {DependencyChain} from './dependency_chain';
import {Panel} from './dock';
import {ChosenSpan, TimelineHost} from './timeline_host';
import {flagTexts} from './tooltip';

const kEventsMax = 200;

// Everything about the chosen span: timing, ids, arguments and links.
export class DetailsPanel implements Panel {
  readonly name = 'details';
  readonly title = 'Details';
  readonly element = element('div', {class: 'panel details'});
  private shown: ChosenSpan|null|undefined = undefined;
  private abort: AbortController|null = null;

  constructor(private readonly host: TimelineHost) {}

  update(): void {
    const {span} = this.host.state;
    if (span === this.shown) return;
    this.shown = span;
    this.abort?.abort();
    if (!span) {
      replaceChildren(
          this.element, notice('empty', 'Nothing is chosen', 'Click a span to see its times, arguments and links.'));
      return;
    }
    void this.load(span);
  }

  private async load(span: ChosenSpan): Promise<void> {
    const {state, api} = this.host, abort = this.abort = new AbortController();
    replaceChildren(this.element, notice('loading', span.name || 'Loading the span'));
    const isMerged = (span.flags & kMerged) !== 0, moment = state.base.absolute(Math.floor((span.from + span.to) / 2));
    try {
      const reply = await api.events(
          state.captureId, {
            streams: span.stream,
            from: isMerged ? state.base.absolute(span.from) : moment,
            to: isMerged ? state.base.absolute(span.to) : moment,
            limit: kEventsMax
          },
          abort.signal);
      if (state.span !== span) return;
      const event = bestOf(reply.events, span, start => state.base.relative(start));
      if (!event) {
        replaceChildren(
            this.element,
            notice(
                'empty', 'No event is recorded at this place',
                'It may have been deleted by retention; reload the page.'));
        return;
      }
      // What was drawn may be cut at the edge of its answer, and a link or hit does not know how long it is.
      if (!isMerged) {
        const {name, depth} = event;
        Object.assign(
            span, {name, depth, from: state.base.relative(event.start_ns), to: state.base.relative(event.end_ns)});
      }
      this.host.detailsArrived(event);
      this.show(span, event, isMerged);
    } catch (error) {
      if (isAbort(error)) return;
      const {message, hint} = describeError(error);
      replaceChildren(
          this.element,
          notice(
              'error', `The details cannot be read: ${message}`, hint,
              button('Try again', () => void this.load(span))));
    }
  }

  private show(span: ChosenSpan, event: EventEntry, isMerged: boolean): void {
    const {state} = this.host, from = state.base.relative(event.start_ns), length = parseCount(event.duration_ns);
    const title = element(
        'div', {class: 'details-head'}, element('h2', {}, event.name),
        isMerged && element('span', {class: 'badge'}, `one of ${formatCount(span.count)} events here`),
        button('Zoom to it', () => {
          state.viewport.show(from - length * 0.3 - 20, from + length * 1.3 + 20);
          this.host.viewChanged();
        }), button('Find all of this name', () => this.host.find(nameTerm(event.name))));
    const timing: [string, string][] = [
      ['Begin', formatMoment(from)],
      ['Duration', event.phase === 'instant' ? 'instant' : formatDuration(length)],
      ['End', event.phase === 'instant' ? '' : formatMoment(from + length)],
      ['UTC', formatUtc(parseInteger(event.start_ns))],
      ['Unix time', `${event.start_ns} ns`],
      [
        'Clock bound',
        event.bound_ns ? `±${formatDuration(parseCount(event.bound_ns))} against other instances` : 'not known'
      ],
    ];
    const flags = [...(event.flags ?? []), ...flagTexts(isMerged ? 0 : span.flags & ~(4 | 16 | 32))];
    if (flags.length) timing.push(['Note', [...new Set(flags)].join(', ')]);
    const ids: [string, string][] = [
      ['Rank', state.streamLabel(event.stream)],
      ['Row', state.rowLabel(event.stream, event.row)],
      ['Type', event.type],
      ['Level', String(event.depth)],
      ['Id', event.id ?? ''],
      ['Sequence', event.sequence_id ?? ''],
    ];
    const args = Object.entries(event.args ?? {}).map(([key, value]): [
      string, string
    ] => [key, typeof value === 'string' ? value : JSON.stringify(value)]);
    replaceChildren(
        this.element, title,
        element(
            'div', {class: 'details-groups'}, group('Timing', timing), group('Identity', ids),
            args.length > 0 && group(`Arguments (${args.length})`, args), this.links(event)));
  }

  private links(event: EventEntry): HTMLElement|null {
    const links = event.links ?? [];
    if (!links.length) return null;
    const {state} = this.host, list = element('ul', {class: 'links'}), chain = element('div', {class: 'chain'});
    for (const link of links) list.appendChild(this.linkLine(link, link.kind, ''));
    const tools = element(
        'div', {class: 'chain-tools'}, button('Waited for', () => void this.follow(event, true, chain)),
        button('Waited for it', () => void this.follow(event, false, chain)));
    if (state.chain.length > 1) this.showChain(chain);
    return element(
        'section', {class: 'links-section'}, element('h3', {}, `Links (${links.length})`), tools, chain, list);
  }

  private linkLine(place: {stream: number, row: number, start_ns: string, name: string}, kind: string, note: string):
      HTMLElement {
    const {state} = this.host, time = state.base.relative(place.start_ns), {stream, row} = place;
    const go = button(place.name, () => {
      const depth = 0, count = 1, flags = 0;
      this.host.chooseSpan({stream, row, name: '', category: '', from: time, to: time, count, flags, depth});
      this.host.reveal(stream, row, time, time);
    }, {class: 'link'});
    const where = `${state.streamLabel(stream)}, ${formatMoment(time)}${note}`;
    return element('li', {}, element('span', {class: 'badge'}, kind), go, element('span', {class: 'faint'}, where));
  }

  // Shows the chain of events that this one waited for, or that waited for it, here and on the timeline.
  private async follow(event: EventEntry, upstream: boolean, into: HTMLElement): Promise<void> {
    const abort = this.abort = new AbortController();
    try {
      const chain = await new DependencyChain(this.host).walk(event, upstream, abort.signal);
      if (this.host.state.event !== event) return;
      this.host.state.chain = chain;
      this.host.overlayChanged();
      if (chain.length > 1)
        this.showChain(into);
      else
        replaceChildren(
            into, element('p', {class: 'faint'}, upstream ? 'It waited for no other.' : 'No other waited for it.'));
    } catch (error) {
      if (!isAbort(error)) this.host.toasts.fail('The chain cannot be followed', error);
    }
  }

  private showChain(into: HTMLElement): void {
    const {chain, base} = this.host.state, list = element('ol', {class: 'links'});
    chain.forEach((event, i) => {
      const before = chain[i - 1];
      const apart = before ? base.relative(event.start_ns) - base.relative(before.start_ns) : 0;
      const note = before ? `, ${formatDuration(Math.abs(apart))} ${apart < 0 ? 'earlier' : 'later'}` : '';
      list.appendChild(this.linkLine(event, String(i + 1), note));
    });
    replaceChildren(into, list);
  }
}

function group(title: string, entries: [string, string][]): HTMLElement {
  const list = element('dl');
  for (const [key, value] of entries) {
    if (value) list.append(element('dt', {}, key || ' '), element('dd', {}, value));
  }
  return element('section', {}, element('h3', {}, title), list);
}

// Of the events at this moment, the one that was drawn there: same row, then same name, then nearest begin.
function bestOf(events: EventEntry[], span: ChosenSpan, relative: (ns: string) => number): EventEntry|undefined {
  const score = (event: EventEntry): number => (event.row === span.row ? 0 : 1e18) +
      (!span.name || event.name === span.name ? 0 : 1e17) + Math.abs(relative(event.start_ns) - span.from);
  return [...events].sort((a, b) => score(a) - score(b))[0];
}
