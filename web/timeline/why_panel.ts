// SPDX-License-Identifier: Apache-2.0
import {shellWord} from '../model/command_text';
import * as report from '../model/insight';
import {Insight, PlacedRefusal, PlacedVerdict} from '../model/insight';
import {formatCount, formatDuration, formatMoment, formatUtc} from '../model/text_format';
import {parseCount, parseInteger} from '../model/time_base';
import {copyLine} from '../widgets/copy_line';
import {button, element, iconButton, notice, replaceChildren} from '../widgets/dom';
import {answerNotes, stacksSection, verdictBadge, verdictBody} from '../widgets/verdict_parts';

import {Panel} from './dock';
import {TimelineHost} from './timeline_host';
import {VerdictJump} from './verdict_jump';

// Beyond, they are counted.
const kVerdictsListed = 100, kRefusalsListed = 200;

// Which rank is slow or hung, and what was not judged: the verdicts on the capture, a window or the selection, each
// with a way to its ranks and its time.
export class WhyPanel implements Panel {
  readonly name = 'why';
  readonly title = 'Why slow?';
  readonly element = element('div', {class: 'panel why'});
  private readonly whole = button('Whole capture', () => this.ask('all'), {'aria-pressed': 'false'});
  private readonly window = button('Why in this window', () => this.askWindow());
  private readonly selection = button('Why in the selection', () => this.askSelection());
  private readonly job = element('select', {'aria-label': 'Job'});
  private readonly bands = button('Mark on the timeline (v)', () => this.toggleBands(), {'aria-pressed': 'true'});
  private readonly again = iconButton('refresh', 'Judge again', () => this.askAgain());
  private readonly stretch = element('span', {class: 'faint', role: 'status'});
  private readonly body = element('div', {class: 'why-body', tabindex: '-1'});
  private readonly jump: VerdictJump;
  private cards: HTMLElement[] = [];
  private jobs = '';
  private shown: unknown = undefined;  // what the body shows

  constructor(private readonly host: TimelineHost) {
    this.jump = new VerdictJump(host);
    this.job.addEventListener('change', () => this.ask(host.state.why || 'all'));
    this.element.append(
        element(
            'div', {class: 'panel-head'}, this.whole, this.window, this.selection, this.job, this.again, this.stretch,
            element('span', {class: 'grow'}), this.bands),
        this.body);
  }

  update(): void {
    const {state, verdicts} = this.host;
    if (!state.why) return this.ask('all');
    this.updateHead();
    const shows = verdicts.isLoading ? 'loading' : verdicts.problem ?? state.insight?.report;
    if (shows !== this.shown) {
      this.shown = shows;
      this.cards = [];
      if (verdicts.problem)
        this.showProblem(verdicts.problem);
      else if (state.insight)
        this.show(state.insight);
      else
        replaceChildren(this.body, notice('loading', 'Comparing the ranks’ own work'));
    }
    this.cards.forEach((card, i) => {
      const isChosen = i === state.verdict;
      card.classList.toggle('chosen', isChosen);
      if (isChosen)
        card.setAttribute('aria-current', 'true');
      else
        card.removeAttribute('aria-current');
    });
  }

  // Puts the keyboard on the first verdict, or on the panel.
  focus(): void {
    (this.body.querySelector<HTMLElement>('.verdict-tools button') ?? this.whole).focus();
  }

  // Zooms to what shows the verdict.
  showVerdict(index: number): void {
    this.go(() => this.jump.showEvidenceOf(index));
  }

  private ask(why: string): void {
    this.host.verdicts.ask(why, this.job.value || this.host.state.whyJob);
  }

  private askWindow(): void {
    const {base, viewport, layout} = this.host.state;
    this.askStretch(
        base.absolute(Math.max(layout.begin, viewport.from)), base.absolute(Math.min(layout.end + 1, viewport.to)));
  }

  private askSelection(): void {
    const {base, box} = this.host.state;
    if (box) this.askStretch(base.absolute(box.from), base.absolute(box.to));
  }

  private askStretch(from: string, to: string): void {
    if (parseInteger(to) <= parseInteger(from)) return this.host.toasts.say('There are no events in this stretch.');
    this.ask(`${from}.${to}`);
  }

  private askAgain(): void {
    this.host.verdicts.ask(this.host.state.why || 'all', this.host.state.whyJob);
  }

  private toggleBands(): void {
    const {state} = this.host;
    state.bands = !state.bands;
    this.host.viewChanged();
    this.updateHead();
  }

  private updateHead(): void {
    const {state, verdicts} = this.host, {layout, base} = state, [from, to] = state.why.split('.');
    this.whole.setAttribute('aria-pressed', String(state.why === 'all'));
    this.selection.disabled = !state.box;
    this.selection.title = state.box ? '' : 'Drag a box over the timeline first';
    this.bands.setAttribute('aria-pressed', String(state.bands));
    this.updateJobs();
    const stretch = to === undefined ? 'of the whole capture'
                                     : `of ${formatMoment(base.relative(from))} to ${formatMoment(base.relative(to))}`;
    const isOld = state.insight !== null && state.insightVersion !== layout.version;
    this.stretch.textContent = verdicts.isLoading ? '' : isOld ? `${stretch}; the capture has grown since` : stretch;
  }

  // Captures of one job need no choice.
  private updateJobs(): void {
    const {layout, whyJob} = this.host.state,
                   names = [...new Set(layout.streams.map(stream => stream.job).filter(name => name))].sort();
    if (whyJob && !names.includes(whyJob)) names.push(whyJob);
    this.job.hidden = names.length < 2 && !whyJob;
    if (names.join('\n') !== this.jobs) {
      this.jobs = names.join('\n');
      replaceChildren(
          this.job, element('option', {value: ''}, 'All jobs'),
          ...names.map(name => element('option', {value: name}, name)));
    }
    this.job.value = whyJob;
  }

  private showProblem({message, hint}: {message: string, hint: string}): void {
    replaceChildren(
        this.body,
        notice('error', `The ranks cannot be judged: ${message}`, hint, button('Try again', () => this.askAgain())));
  }

  private show(insight: Insight): void {
    const message = insight.report, listed = insight.verdicts.slice(0, kVerdictsListed),
          more = insight.verdicts.length - listed.length;
    this.cards = listed.map((verdict, i) => this.card(verdict, i));
    replaceChildren(
        this.body,
        element(
            'div', {class: 'why-answer'}, element('h2', {}, report.headline(message)),
            element(
                'p', {},
                `${report.judgedText(message)}${message.ruleVersion ? `, rule of ${message.ruleVersion}` : ''}. `,
                report.waitText(message))),
        answerNotes(message),
        this.cards.length > 0 && element('ol', {class: 'verdicts', 'aria-label': 'Verdicts'}, ...this.cards),
        more > 0 && element('p', {class: 'faint'}, `${formatCount(more)} more verdicts are not listed.`),
        ...(message.stacks ?? []).map(stacksSection),
        insight.refusals.length > 0 && this.refusalTable(insight.refusals),
        copyLine(this.command(), 'prints the same in a terminal', 'Copy').element);
  }

  private command(): string {
    const {why, whyJob, captureId} = this.host.state, [from, to] = why.split('.');
    const words = ['neurontrace', 'why', captureId];
    if (to !== undefined) words.push('--from', from, '--to', to);
    if (whyJob) words.push('--job', shellWord(whyJob));
    return words.join(' ');
  }

  private card(verdict: PlacedVerdict, index: number): HTMLElement {
    const {message} = verdict, subject = this.subjectOf(verdict);
    const tools = element(
        'span', {class: 'verdict-tools', role: 'group', 'aria-label': `${verdict.kind} ${subject}`},
        button('Show ranks and time', () => this.go(() => this.jump.show(index)), {class: 'primary'}),
        report.evidenceQuery(message) !== '' && verdict.streams.length > 0 &&
            button(
                report.isShownByCollective(message) ? 'Zoom to the collective' : 'Zoom to one execution',
                () => this.showVerdict(index)),
        button('Heat map', () => this.jump.showOnHeatMap(index)));
    const length = formatDuration(verdict.to - verdict.from),
          // Nobody needs it to a nanosecond here.
        when = `since ${formatMoment(Math.round(verdict.from / 1000) * 1000)} (${
            formatUtc(parseInteger(message.sinceNs))} UTC), for ${length}`;
    return element(
        'li', {class: `verdict-card ${verdict.tone}`},
        element(
            'div', {class: 'verdict-head'}, verdictBadge(message), element('strong', {}, subject),
            element('span', {class: 'faint'}, [message.phase, message.role].filter(text => text).join(' · ')),
            verdict.unplaced > 0 && verdict.tone !== 'uneven' &&
                element('span', {class: 'faint'}, `${formatCount(verdict.unplaced)} not marked on the timeline`),
            element('span', {class: 'grow'}), tools),
        verdictBody(message, when));
  }

  private subjectOf({tone, message}: PlacedVerdict): string {
    return tone === 'uneven' ? message.role ? 'all ranks of a role' : 'no rank' : report.suspectsText(message);
  }

  private go(jump: () => void): void {
    jump();
    this.update();
  }

  private refusalTable(refusals: PlacedRefusal[]): HTMLElement {
    const listed = refusals.slice(0, kRefusalsListed), more = refusals.length - listed.length;
    const line = ({message, from, to, isOfAll}: PlacedRefusal): HTMLElement => element(
        'tr', {}, element('td', {}, message.reason ?? ''),
        element('td', {}, isOfAll ? 'all' : report.coresText(message.cores ?? [], message.coresTotal ?? 0)),
        element(
            'td', {class: 'number'},
            parseInteger(message.beginNs) > 0n
                ? button(
                      formatMoment(from),
                      () => {
                        this.host.state.viewport.show(from - (to - from) * 0.1 - 1000, to + (to - from) * 0.1 + 1000);
                        this.host.viewChanged();
                      },
                      {class: 'link', 'aria-label': `Show ${formatMoment(from)} on the timeline`})
                : 'the whole stretch'),
        element('td', {class: 'number'}, parseCount(message.count) ? formatCount(parseCount(message.count)) : ''),
        element('td', {class: 'wide'}, message.missing ?? ''));
    const column = (title: string, style = ''): HTMLElement => element('th', {scope: 'col', class: style}, title);
    return element(
        'div', {class: 'refusals'}, element('h3', {}, `Not judged (${formatCount(refusals.length)})`),
        element(
            'div', {class: 'table-box'},
            element(
                'table', {'aria-label': 'What was not judged'},
                element(
                    'thead', {},
                    element(
                        'tr', {}, column('Reason'), column('Ranks'), column('From', 'number'),
                        column('Count', 'number'), column('Missing, and how to get it', 'wide'))),
                element('tbody', {}, ...listed.map(line)))),
        more > 0 && element('p', {class: 'faint'}, `${formatCount(more)} more are not listed.`));
  }
}
