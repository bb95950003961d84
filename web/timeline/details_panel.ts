// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {EventEntry, EventLink} from '../api/api_types';
import {kMerged} from '../model/span_tile';
import {nameTerm} from '../model/query';
import {formatCount, formatDuration, formatMoment, formatUtc} from '../model/text_format';
import {parseCount, parseInteger} from '../model/time_base';
import {button, element, notice, replaceChildren} from '../widgets/dom';
import {Panel} from './dock';
import {ChosenSpan, TimelineHost} from './timeline_host';
import {flagTexts} from './tooltip';

const kEventsMax = 200;

// Everything about the chosen span: timing, ids, arguments and links.
export class DetailsPanel implements Panel {
  readonly name = 'details';
  readonly title = 'Details';
  readonly element = element('div', {class: 'panel details'});
  private shown: ChosenSpan | null | undefined = undefined;
  private abort: AbortController | null = null;

  constructor(private readonly host: TimelineHost) {}

  update(): void {
    const {span} = this.host.state;
    if (span === this.shown) return;
    this.shown = span;
    this.abort?.abort();
    if (!span) {
      replaceChildren(this.element, notice('empty', 'Nothing is chosen', 'Click a span to see its times, arguments and links.'));
      return;
    }
    void this.load(span);
  }

  private async load(span: ChosenSpan): Promise<void> {
    const {state, api} = this.host, abort = this.abort = new AbortController();
    replaceChildren(this.element, notice('loading', span.name || 'Loading the span'));
    const isMerged = (span.flags & kMerged) !== 0, moment = state.base.absolute((span.from + span.to) / 2);
    try {
      const reply = await api.events(state.captureId, {
        streams: span.stream, from: isMerged ? state.base.absolute(span.from) : moment, to: isMerged ? state.base.absolute(span.to) : moment,
        limit: kEventsMax}, abort.signal);
      if (state.span !== span) return;
      const event = bestOf(reply.events, span, start => state.base.relative(start));
      if (!event) {
        replaceChildren(this.element, notice('empty', 'No event is recorded at this place', 'It may have been deleted by retention; reload the page.'));
        return;
      }
      if (!isMerged) span.depth = event.depth;
      if (!span.name) {
        Object.assign(span, {name: event.name, from: state.base.relative(event.start_ns), to: state.base.relative(event.end_ns), depth: event.depth});
      }
      this.host.detailsArrived(event);
      this.show(span, event, isMerged);
    } catch (error) {
      if (isAbort(error)) return;
      const {message, hint} = describeError(error);
      replaceChildren(this.element, notice('error', `The details cannot be read: ${message}`, hint, button('Try again', () => void this.load(span))));
    }
  }

  private show(span: ChosenSpan, event: EventEntry, isMerged: boolean): void {
    const {state} = this.host, from = state.base.relative(event.start_ns), length = parseCount(event.duration_ns);
    const title = element('div', {class: 'details-head'}, element('h3', {}, event.name),
      isMerged && element('span', {class: 'badge'}, `one of ${formatCount(span.count)} events here`),
      button('Zoom to it', () => { state.viewport.show(from - length * 0.3 - 20, from + length * 1.3 + 20); this.host.viewChanged(); }),
      button('Find all of this name', () => this.host.find(nameTerm(event.name))));
    const timing: [string, string][] = [
      ['Begin', formatMoment(from)], ['Duration', event.phase === 'instant' ? 'instant' : formatDuration(length)],
      ['End', event.phase === 'instant' ? '' : formatMoment(from + length)], ['UTC', formatUtc(parseInteger(event.start_ns))], ['Unix time', `${event.start_ns} ns`],
      ['Clock bound', event.bound_ns ? `±${formatDuration(parseCount(event.bound_ns))} against other instances` : 'not known'],
    ];
    const flags = [...(event.flags ?? []), ...flagTexts(isMerged ? 0 : span.flags & ~(4 | 16 | 32))];
    if (flags.length) timing.push(['Note', [...new Set(flags)].join(', ')]);
    const ids: [string, string][] = [
      ['Rank', state.streamLabel(event.stream)], ['Row', state.rowLabel(event.stream, event.row)], ['Type', event.type], ['Level', String(event.depth)],
      ['Id', event.id ?? ''], ['Sequence', event.sequence_id ?? ''],
    ];
    const args = Object.entries(event.args ?? {}).map(([key, value]): [string, string] => [key, typeof value === 'string' ? value : JSON.stringify(value)]);
    replaceChildren(this.element, title, element('div', {class: 'details-groups'}, group('Timing', timing), group('Identity', ids),
                    args.length > 0 && group(`Arguments (${args.length})`, args), this.links(event.links ?? [])));
  }

  private links(links: EventLink[]): HTMLElement | null {
    if (!links.length) return null;
    const {state} = this.host, list = element('ul', {class: 'links'});
    for (const link of links) {
      const time = state.base.relative(link.start_ns);
      const go = button(link.name, () => {
        this.host.chooseSpan({stream: link.stream, row: link.row, name: '', category: '', from: time, to: time + 1, count: 1, flags: 0, depth: 0});
        this.host.reveal(link.stream, link.row, time, time);
      }, {class: 'link'});
      list.appendChild(element('li', {}, element('span', {class: 'badge'}, link.kind), go,
                               element('span', {class: 'faint'}, `${state.streamLabel(link.stream)}, ${formatMoment(time)}`)));
    }
    return element('section', {}, element('h4', {}, `Links (${links.length})`), list);
  }
}

function group(title: string, entries: [string, string][]): HTMLElement {
  const list = element('dl');
  for (const [key, value] of entries) {
    if (value) list.append(element('dt', {}, key || ' '), element('dd', {}, value));
  }
  return element('section', {}, element('h4', {}, title), list);
}

// Of the events at this moment, the one that was drawn there: same row, then same name, then nearest begin.
function bestOf(events: EventEntry[], span: ChosenSpan, relative: (ns: string) => number): EventEntry | undefined {
  const score = (event: EventEntry): number => (event.row === span.row ? 0 : 1e18) + (!span.name || event.name === span.name ? 0 : 1e17) +
    Math.abs(relative(event.start_ns) - span.from);
  return [...events].sort((a, b) => score(a) - score(b))[0];
}
