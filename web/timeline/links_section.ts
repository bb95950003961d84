// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {EventEntry, EventLink, LinkedEvent, LinksReply} from '../api/api_types';
import {Direction, orderOf} from '../model/link_arrows';
import {safeText} from '../model/safe_text';
import {formatCount, formatDuration, formatMoment} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {button, element, notice, replaceChildren} from '../widgets/dom';

import {TimelineHost} from './timeline_host';

const kNameMax = 120;
const kSigns: Record<Direction, string> = {
  upstream: '←',
  downstream: '→',
  peer: '↔'
};

// What the chosen event is connected to, what is missing, and the chain of its dependencies. Each line goes there.
export class LinksSection {
  readonly element = element('section', {class: 'links-section'});
  private abort: AbortController|null = null;

  constructor(private readonly host: TimelineHost) {}

  // Asks for the links of the event whose details are shown.
  async load(event: EventEntry): Promise<void> {
    const {state, api} = this.host;
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    this.element.hidden = !event.id;
    if (!event.id) return;
    replaceChildren(this.element, element('h3', {}, 'Links'), element('p', {class: 'faint'}, 'Looking for links…'));
    try {
      const reply = await api.links(state.captureId, {event: event.id, chain: state.chain || undefined}, abort.signal);
      if (state.event !== event) return;
      this.host.linksArrived(reply);
      this.show(event, reply);
    } catch (error) {
      if (isAbort(error)) return;
      const {message, hint} = describeError(error);
      replaceChildren(
          this.element, element('h3', {}, 'Links'),
          notice(
              'error', `The links cannot be read: ${message}`, hint, button('Try again', () => void this.load(event))));
    }
  }

  // Follows the chain in this direction, or no longer if it does.
  follow(direction: 'upstream'|'downstream'): void {
    const {state} = this.host, {event} = state;
    if (!state.span) return this.host.toasts.say('Nothing is chosen: click a span whose dependencies to follow.');
    state.chain = state.chain === direction ? '' : direction;
    // While the details are being read, their links follow with this direction.
    if (event) void this.load(event);
  }

  private show(event: EventEntry, reply: LinksReply): void {
    const {chain} = this.host.state, more = parseCount(reply.more);
    const tool = (direction: 'upstream'|'downstream', text: string): HTMLElement =>
        button(text, () => this.follow(direction), {'aria-pressed': String(chain === direction)});
    const list = element('ul', {class: 'links'});
    for (const link of reply.links) list.appendChild(this.line(event, link, link.kind, kSigns[link.direction] ?? ''));
    replaceChildren(
        this.element, element('h3', {}, `Links (${formatCount(reply.links.length + more)})`),
        element(
            'div', {class: 'chain-tools'}, tool('upstream', 'What it waited for (u)'),
            tool('downstream', 'What waited for it (j)')),
        chain ? this.chain(event, reply) : null,
        reply.links.length ? list : element('p', {class: 'faint'}, 'It is connected to no other event.'),
        more > 0 && element('p', {class: 'faint'}, `and ${formatCount(more)} more`),
        ...reply.unlinked.map(text => element('p', {class: 'unlinked'}, `Missing: ${safeText(text, 500)}`)),
        Boolean(reply.cut) && element('p', {class: 'faint'}, `Cut: ${safeText(reply.cut, 500)}`),
        !reply.complete && element('p', {class: 'faint'}, 'Some chunks were not read: links may be missing.'));
  }

  private chain(event: EventEntry, reply: LinksReply): HTMLElement {
    const {chain} = this.host.state;
    if (!reply.chain.length) {
      return element(
          'p', {class: 'faint'}, chain === 'upstream' ? 'It waited for no other.' : 'No other waited for it.');
    }
    const list = element('ol', {class: 'links chain'}),
          places = new Map<string, LinkedEvent>([[reply.event.id, reply.event]]);
    for (const step of reply.chain) {
      places.set(step.id, step);
      list.appendChild(this.line(places.get(step.from) ?? event, step, step.kind, `${step.distance}.`));
    }
    return list;
  }

  private line(from: {start_ns: string}, link: EventLink, kind: string, sign: string): HTMLElement {
    const {state} = this.host, time = state.base.relative(link.start_ns), begin = state.base.relative(from.start_ns);
    const go = button(safeText(link.name, kNameMax), () => this.goTo(link), {class: 'link'});
    const where = [
      state.streamLabel(link.stream), orderOf(begin, time, formatDuration), safeText(link.row_name ?? '', kNameMax),
      formatMoment(time)
    ].filter(text => text);
    return element(
        'li', {}, element('span', {class: 'faint', title: link.direction}, sign),
        element('span', {class: 'badge'}, safeText(kind, 40)), go,
        element('span', {class: 'faint where', title: where.join(', ')}, where.join(', ')));
  }

  private goTo(link: LinkedEvent): void {
    const {state} = this.host, {stream, row, id} = link, depth = link.depth ?? 0;
    const from = state.base.relative(link.start_ns), to = state.base.relative(link.end_ns);
    this.host.chooseSpan({stream, row, name: link.name, category: '', from, to, count: 1, flags: 0, depth, id});
    this.host.reveal(stream, row, from, to);
  }
}
