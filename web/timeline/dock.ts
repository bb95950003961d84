// SPDX-License-Identifier: Apache-2.0
import {element, iconButton, replaceChildren} from '../widgets/dom';

// One panel below the timeline.
export interface Panel {
  readonly name: string;  // as in the URL
  readonly title: string;
  readonly element: HTMLElement;
  // Called when it becomes visible, and while it is whenever the view changed.
  update(): void;
}

const kHeightMin = 90;

// The panels below the timeline, one visible at a time; its upper edge can be dragged.
export class Dock {
  readonly element = element('section', {class: 'dock', 'aria-label': 'Panels'});
  private readonly tabs = element('div', {class: 'dock-tabs', role: 'tablist', 'aria-label': 'Panels'});
  private readonly body = element('div', {class: 'dock-body', role: 'tabpanel'});
  private open = '';

  constructor(private readonly panels: Panel[], private readonly owner: {panelChanged(name: string): void}) {
    const head =
        element('div', {class: 'dock-head'}, this.tabs, iconButton('close', 'Close panel (Esc)', () => this.show('')));
    this.makeResizable(head);
    this.element.append(head, this.body);
    panels.forEach((panel, i) => {
      const tab = element(
          'button', {
            type: 'button',
            role: 'tab',
            'aria-selected': 'false',
            id: `tab-${panel.name}`,
            'aria-controls': 'dock-body',
            onclick: () => this.show(this.open === panel.name ? '' : panel.name)
          },
          panel.title);
      tab.addEventListener('keydown', event => this.onKey(event, i));
      this.tabs.appendChild(tab);
    });
    this.body.id = 'dock-body';
    this.show('');
  }

  get shown(): string {
    return this.open;
  }

  show(name: string): void {
    this.open = name;
    const panel = this.panels.find(other => other.name === name);
    [...this.tabs.children].forEach((tab, i) => {
      const isOpen = this.panels[i] === panel;
      tab.setAttribute('aria-selected', String(isOpen));
      (tab as HTMLElement).tabIndex = isOpen || (!panel && i === 0) ? 0 : -1;
    });
    this.element.classList.toggle('open', panel !== undefined);
    this.element.dataset.panel = name;
    this.body.hidden = panel === undefined;
    if (panel && this.body.firstChild !== panel.element) {
      this.body.textContent = '';
      this.body.appendChild(panel.element);
      this.body.setAttribute('aria-labelledby', `tab-${name}`);
    }
    if (!panel) this.body.textContent = '';
    this.owner.panelChanged(name);
    panel?.update();
  }

  // A count beside the title of a panel, and the same for screen readers; '' removes it.
  badge(name: string, text: string, label: string): void {
    const at = this.panels.findIndex(panel => panel.name === name), tab = this.tabs.children[at];
    if (!tab) return;
    replaceChildren(
        tab, this.panels[at].title, text && element('span', {class: 'tab-badge', 'aria-hidden': 'true'}, text),
        label && element('span', {class: 'unseen'}, ` ${label}`));
  }

  update(): void {
    this.panels.find(panel => panel.name === this.open)?.update();
  }

  private onKey(event: KeyboardEvent, index: number): void {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    const next = (index + step + this.panels.length) % this.panels.length;
    this.show(this.panels[next].name);
    (this.tabs.children[next] as HTMLElement).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  private makeResizable(head: HTMLElement): void {
    let startY = 0, startHeight = 0;
    head.addEventListener('pointerdown', event => {
      if ((event.target as Element).closest('button') || !this.open) return;
      startY = event.clientY;
      startHeight = this.element.offsetHeight;
      head.setPointerCapture(event.pointerId);
    });
    head.addEventListener('pointermove', event => {
      if (!head.hasPointerCapture(event.pointerId)) return;
      const height = Math.max(kHeightMin, Math.min(innerHeight * 0.75, startHeight + startY - event.clientY));
      this.element.style.setProperty('--dock-height', `${height}px`);
    });
  }
}
