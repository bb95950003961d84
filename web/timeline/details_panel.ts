// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {EventEntry} from '../api/api_types';
import {nameTerm} from '../model/query';
import {kMerged} from '../model/span_tile';
import {formatCount, formatDuration, formatMoment, formatUtc} from '../model/text_format';
import {parseCount, parseInteger} from '../model/time_base';
import {button, element, notice, replaceChildren} from '../widgets/dom';

import {Panel} from './dock';
import {LinksSection} from './links_section';
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
  private readonly links: LinksSection;

  constructor(private readonly host: TimelineHost) {
    this.links = new LinksSection(host);
  }

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

  followChain(upstream: boolean): void {
    this.links.follow(upstream ? 'upstream' : 'downstream');
  }

  private async load(span: ChosenSpan): Promise<void> {
    const {state} = this.host, abort = this.abort = new AbortController();
    replaceChildren(this.element, notice('loading', span.name || 'Loading the span'));
    const isMerged = (span.flags & kMerged) !== 0;
    try {
      const event = await this.find(span, isMerged, abort.signal);
      if (state.span !== span) return;
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
        const {name, id} = event, depth = span.name ? span.depth : event.depth ?? 0;
        Object.assign(
            span, {name, id, depth, from: state.base.relative(event.start_ns), to: state.base.relative(event.end_ns)});
      }
      this.host.detailsArrived(event);
      this.show(span, event, isMerged);
      void this.links.load(event);
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

  // The event that was drawn at this place, or the one with the span's id.
  private async find(span: ChosenSpan, isMerged: boolean, signal: AbortSignal): Promise<EventEntry|undefined> {
    const {state, api} = this.host, {base, captureId} = state;
    const ask = async(from: number, to: number): Promise<EventEntry|undefined> => {
      const reply = await api.events(
          captureId, {streams: span.stream, from: base.absolute(from), to: base.absolute(to), limit: kEventsMax},
          signal);
      return bestOf(reply.events, span, start => base.relative(start));
    };
    const moment = Math.floor((span.from + span.to) / 2);
    const event = await (isMerged ? ask(span.from, Math.max(span.to, span.from + 1)) : ask(moment, moment + 1));
    if (!span.id || event?.id === span.id) return event;
    // A better model of its clock moved the event since the address was made: only the id is certain.
    const start = base.relative((await api.links(captureId, {event: span.id}, signal)).event.start_ns);
    return ask(start, start + 1);
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
      ['Clock bound', this.boundText(event)],
    ];
    const flags = [...(event.flags ?? []), ...flagTexts(isMerged ? 0 : span.flags & ~(4 | 16 | 32))];
    if (flags.length) timing.push(['Note', [...new Set(flags)].join(', ')]);
    const ids: [string, string][] = [
      ['Rank', state.streamLabel(event.stream)],
      ['Row', event.row_name ?? state.rowLabel(event.stream, event.row)],
      ['Type', event.type],
      ['Level', event.depth === undefined ? '' : String(event.depth)],
      ['Category', event.category ?? ''],
      ['Thread', event.thread_id ?? ''],
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
            args.length > 0 && group(`Arguments (${args.length})`, args), this.links.element));
  }

  private boundText(event: EventEntry): string {
    const stream = this.host.state.layout.stream(event.stream);
    const isKnown = event.bound_known ?? stream?.boundKnown ?? false;
    const boundNs = isKnown ? event.bound_ns ? parseCount(event.bound_ns) : stream?.boundNs ?? 0 : null;
    return boundNs === null ? 'not known' : `±${formatDuration(boundNs)} against other instances`;
  }
}

function group(title: string, entries: [string, string][]): HTMLElement {
  const list = element('dl');
  for (const [key, value] of entries) {
    if (value) list.append(element('dt', {}, key || ' '), element('dd', {}, value));
  }
  return element('section', {}, element('h3', {}, title), list);
}

// Of the events at this moment, the one that was drawn there: same id if there is one, same row, then same name, then
// nearest begin.
function bestOf(events: EventEntry[], span: ChosenSpan, relative: (ns: string) => number): EventEntry|undefined {
  const score = (event: EventEntry): number => (!span.id || event.id === span.id ? 0 : 1e19) +
      (event.row === span.row ? 0 : 1e18) + (!span.name || event.name === span.name ? 0 : 1e17) +
      Math.abs(relative(event.start_ns) - span.from);
  return [...events].sort((a, b) => score(a) - score(b))[0];
}
