// SPDX-License-Identifier: Apache-2.0
import {element} from './dom';

export interface MenuItem {
  label: string;
  hint?: string;
  action: () => void;
  disabled?: boolean;
}

// A button that opens a list of actions below itself.
export class Menu {
  readonly element: HTMLElement;
  private readonly list = element('div', {class: 'menu-list', role: 'menu', hidden: true});
  private readonly opener: HTMLButtonElement;

  constructor(label: string|Node, title: string, private readonly items: () => MenuItem[], style = '') {
    this.opener = element(
        'button', {
          type: 'button',
          class: style,
          title,
          'aria-haspopup': 'menu',
          'aria-expanded': 'false',
          'aria-label': typeof label === 'string' ? undefined : title
        },
        label);
    this.opener.addEventListener('click', () => this.list.hidden ? this.open() : this.close());
    this.element = element('div', {class: 'menu'}, this.opener, this.list);
    this.element.addEventListener('keydown', event => this.onKey(event));
    this.element.addEventListener('focusout', event => {
      if (!this.element.contains(event.relatedTarget as Node | null)) this.close();
    });
  }

  set label(text: string) {
    this.opener.textContent = text;
  }

  private open(): void {
    this.list.textContent = '';
    for (const item of this.items()) {
      const entry = element(
          'button', {type: 'button', role: 'menuitem', tabindex: '-1', disabled: item.disabled === true}, item.label,
          item.hint !== undefined && element('span', {class: 'menu-hint'}, item.hint));
      entry.addEventListener('click', () => {
        this.close();
        this.opener.focus();
        item.action();
      });
      this.list.appendChild(entry);
    }
    this.list.hidden = false;
    this.opener.setAttribute('aria-expanded', 'true');
    this.place();
    (this.list.querySelector('button:not(:disabled)') as HTMLElement | null)?.focus();
  }

  // Fixed, because tables and panels clip what leaves them.
  private place(): void {
    const below = this.opener.getBoundingClientRect(), own = this.list.getBoundingClientRect();
    this.list.style.left = `${Math.max(4, Math.min(below.left, innerWidth - own.width - 8))}px`;
    const fits = below.bottom + own.height + 8 < innerHeight;
    this.list.style.top = `${fits ? below.bottom + 2 : Math.max(4, below.top - own.height - 2)}px`;
  }

  private close(): void {
    this.list.hidden = true;
    this.opener.setAttribute('aria-expanded', 'false');
  }

  private onKey(event: KeyboardEvent): void {
    if (this.list.hidden) return;
    const entries = [...this.list.querySelectorAll<HTMLElement>('button:not(:disabled)')];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'ArrowDown')
      entries[(at + 1) % entries.length]?.focus();
    else if (event.key === 'ArrowUp')
      entries[(at + entries.length - 1) % entries.length]?.focus();
    else if (event.key === 'Escape')
      this.close(), this.opener.focus();
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  }
}
