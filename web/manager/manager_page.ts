// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {describeError} from '../api/api_error';
import {Session} from '../api/api_types';
import {CaptureFilter, tagFilter} from '../model/capture_filter';
import {formatCount} from '../model/text_format';
import {button, element, iconButton, notice, replaceChildren} from '../widgets/dom';
import {Navigation, Page} from '../widgets/navigation';
import {Theme} from '../widgets/theme';
import {Toasts} from '../widgets/toasts';

import {CaptureActions} from './capture_actions';
import {CaptureFacts} from './capture_facts';
import {CapturesTable} from './captures_table';
import {FleetTable, fleetTables} from './fleet_tables';
import {NowStrip} from './now_strip';
import {StartDialog} from './start_dialog';

const kDefaultSort = '-Started (UTC)';
const kRefreshMs = 5000, kRefreshLiveMs = 2000;

// The list of captures, and the fleet in tabs beside it. What is seen is in the URL: ?tab=clocks&filter=llama.
export class ManagerPage implements Page {
  readonly element = element('div', {class: 'manager'});
  private readonly body = element('div', {class: 'manager-body', role: 'tabpanel', id: 'manager-body'});
  private readonly tabs = element('div', {class: 'tabs', role: 'tablist', 'aria-label': 'Captures and fleet'});
  private readonly filter = element('input', {
    type: 'search',
    class: 'search-input',
    placeholder: 'Filter by name, job, state, tag:…',
    'aria-label': 'Filter captures',
    spellcheck: 'false'
  });
  private readonly count = element('span', {class: 'faint', role: 'status'});
  private readonly captures: CapturesTable;
  private readonly fleet = fleetTables();
  private readonly now: NowStrip;
  private tab = 'captures';
  private facts: CaptureFacts[]|null = null;
  private timer = 0;
  private closed = false;
  private failed = false;
  private readonly none = element('div', {class: 'faint', hidden: true});
  private shown = '';

  constructor(
      private readonly api: ApiClient, private readonly toasts: Toasts, navigation: Navigation, theme: Theme,
      private readonly session: Session, account: HTMLElement) {
    const given = new URLSearchParams(location.search);
    this.captures = new CapturesTable(new CaptureActions(api, toasts, session, this), navigation, this);
    this.captures.table.sort = given.get('sort') ?? '';
    this.tab = this.fleet.some(table => table.name === given.get('tab')) ? given.get('tab')! : 'captures';
    this.filter.value = given.get('filter') ?? '';
    this.filter.addEventListener('input', () => {
      this.writeUrl();
      this.showCaptures();
    });
    const start = button('Start capture', () => new StartDialog(api, this).open(), {
      class: 'primary',
      disabled: !session.may.start,
      title: session.may.start ? '' : 'You may not start captures here'
    });
    this.now = new NowStrip(api);
    this.element.append(
        element(
            'header', {class: 'top-bar'}, element('h1', {class: 'product'}, 'neurontrace'), this.tabs,
            element('span', {class: 'grow'}), account, start, iconButton('refresh', 'Refresh', () => this.refresh()),
            iconButton('theme', 'Light or dark', () => theme.toggle())),
        this.now.element, element('main', {class: 'manager-main'}, this.body));
    this.buildTabs();
    this.choose(this.tab);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.now.close();
  }

  refresh(): void {
    clearTimeout(this.timer);
    void this.load();
  }

  sortChanged(): void {
    this.writeUrl();
  }

  filterTag(tag: string): void {
    this.filter.value = tagFilter(tag);
    this.writeUrl();
    this.showCaptures();
    // The button that was pressed may be gone with its row.
    this.filter.focus();
  }

  // A capture was started by the dialog.
  started(id: string): void {
    this.toasts.say(`Capture ${id} is recording.`);
    this.choose('captures');
  }

  private buildTabs(): void {
    for (const [name, title] of [['captures', 'Captures'], ...this.fleet.map(table => [table.name, table.title])]) {
      const tab = element(
          'button', {
            type: 'button',
            role: 'tab',
            id: `tab-${name}`,
            'aria-controls': 'manager-body',
            onclick: () => this.choose(name)
          },
          title);
      tab.addEventListener('keydown', event => this.onTabKey(event));
      this.tabs.appendChild(tab);
    }
  }

  private onTabKey(event: KeyboardEvent): void {
    const step = event.key === 'ArrowRight' ? 1
        : event.key === 'ArrowLeft'         ? -1
                                            : 0,
          all = [...this.tabs.children] as HTMLElement[];
    if (step === 0) return;
    const next = all[(all.indexOf(event.currentTarget as HTMLElement) + step + all.length) % all.length];
    next.focus();
    next.click();
  }

  private choose(tab: string): void {
    this.tab = tab;
    for (const entry of this.tabs.children) {
      const isChosen = entry.id === `tab-${tab}`;
      entry.setAttribute('aria-selected', String(isChosen));
      (entry as HTMLElement).tabIndex = isChosen ? 0 : -1;
    }
    this.body.setAttribute('aria-labelledby', `tab-${tab}`);
    this.shown = '';
    replaceChildren(this.body, notice('loading', 'Loading'));
    this.writeUrl();
    this.refresh();
  }

  private writeUrl(): void {
    const query = new URLSearchParams();
    if (this.tab !== 'captures') query.set('tab', this.tab);
    if (this.filter.value) query.set('filter', this.filter.value);
    if (this.captures.table.sort !== kDefaultSort) query.set('sort', this.captures.table.sort);
    history.replaceState(null, '', '/' + (query.toString() ? '?' + query.toString() : ''));
  }

  private async load(): Promise<void> {
    const tab = this.tab, table = this.fleet.find(entry => entry.name === tab);
    try {
      if (table) {
        const reply = await this.api.operator(table.path);
        if (this.tab === tab && !this.closed) this.showFleet(table, reply);
      } else {
        const captures = await this.api.captures();
        this.facts = captures.map(capture => new CaptureFacts(capture));
        if (this.tab === tab && !this.closed) this.showCaptures();
      }
      this.failed = false;
    } catch (error) {
      if (this.tab === tab && !this.closed) this.showError(error);
    }
    if (this.closed) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(
        () => void this.load(), this.facts?.some(facts => facts.isLive) ? kRefreshLiveMs : kRefreshMs);
  }

  private showError(error: unknown): void {
    const {message, hint} = describeError(error);
    this.failed = true;
    this.shown = '';
    replaceChildren(this.body, notice('error', message, hint, button('Try again', () => this.refresh())));
  }

  private showFleet(table: FleetTable, reply: Record<string, unknown>): void {
    const rows = table.show(reply);
    replaceChildren(
        this.body,
        typeof reply.problem === 'string' && reply.problem &&
            notice('error', reply.problem, 'The rules before are still in force.'),
        rows ? table.element : notice('empty', table.emptyTitle, table.emptyHint));
  }

  private showCaptures(): void {
    if (!this.facts || this.tab !== 'captures') return;
    const filter = new CaptureFilter(this.filter.value), rows = this.facts.filter(facts => facts.matches(filter));
    if (!this.facts.length) {
      this.shown = '';
      replaceChildren(
          this.body,
          notice(
              'empty', 'There are no captures', 'Start one here, or with neurontrace capture --duration 30s.',
              ...(this.session.may.start
                      ? [button('Start capture', () => new StartDialog(this.api, this).open(), {class: 'primary'})]
                      : [])));
      return;
    }
    const key = JSON.stringify(rows.map(
        facts =>
            [facts.id, facts.name, facts.state, facts.events, facts.lost, facts.bytes, facts.starred, facts.tags,
             facts.isLive ? facts.durationNs : 0]));
    this.count.textContent = rows.length === this.facts.length
        ? `${formatCount(rows.length)} ${rows.length === 1 ? 'capture' : 'captures'}`
        : `${formatCount(rows.length)} of ${formatCount(this.facts.length)} captures`;
    // An open menu or a focused button stays as it is while nothing changed.
    const isBusy = this.body.querySelector('[aria-expanded=true]') !== null;
    if (this.shown && (key === this.shown || isBusy) && !this.failed) return;
    if (!this.shown)
      replaceChildren(
          this.body, element('div', {class: 'table-head'}, this.filter, this.count), this.captures.table.element,
          this.none);
    this.shown = key;
    this.captures.table.show(rows);
    this.none.hidden = rows.length > 0;
    this.none.textContent = `No capture matches ${this.filter.value.slice(0, 100)}. Fewer words find more.`;
  }
}
