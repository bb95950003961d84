// SPDX-License-Identifier: Apache-2.0
import {button, element, iconButton} from './dom';

// A dialog over the page. The browser keeps the focus inside and gives it back afterwards.
export class Modal {
  readonly body = element('div', {class: 'modal-body'});
  readonly footer = element('div', {class: 'modal-footer'});
  private readonly dialog: HTMLDialogElement;

  constructor(title: string, wide = false) {
    this.dialog = element(
        'dialog', {class: wide ? 'modal wide' : 'modal', 'aria-label': title},
        element(
            'div', {class: 'modal-head'}, element('h2', {}, title), iconButton('close', 'Close', () => this.close())),
        this.body, this.footer);
    this.dialog.addEventListener('close', () => this.dialog.remove());
    // Keys of the page behind do nothing while a dialog is open.
    this.dialog.addEventListener('keydown', event => event.stopPropagation());
  }

  open(): void {
    document.body.appendChild(this.dialog);
    this.dialog.showModal();
  }

  close(): void {
    this.dialog.close();
  }

  addButton(label: string, action: () => void, style = ''): HTMLButtonElement {
    const made = button(label, action, {class: style});
    this.footer.appendChild(made);
    return made;
  }
}

// Asks for one line of text. `required`: the text that has to be typed, for what cannot be undone. `problemOf` returns
// why a text cannot be accepted, or ''.
export function askText(
    title: string, explanation: string, label: string, value: string, action: string, required: string|null,
    done: (text: string) => void, problemOf: (text: string) => string = () => ''): void {
  const modal = new Modal(title);
  const input = element('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', id: 'ask-text'});
  input.value = value;
  const problem = element('p', {class: 'bad', role: 'status', id: 'ask-problem'});
  const isAccepted = (): boolean => (required === null || input.value === required) && !problemOf(input.value);
  const submit = (): void => {
    if (!isAccepted()) return;
    modal.close();
    done(input.value);
  };
  modal.body.append(element('p', {}, explanation),
                    element('label', {class: 'field', for: 'ask-text'}, element('span', {}, label), input), problem);
    modal.addButton('Cancel', () => modal.close());
    const confirm = modal.addButton(action, submit, required === null ? 'primary' : 'danger');
    const check = (): void => {
      confirm.disabled = !isAccepted();
      problem.textContent = problemOf(input.value);
    };
    input.addEventListener('input', check);
    input.addEventListener('keydown', event => {
      if (event.key !== 'Enter') return;
      // Else the key would also press the button that gets the focus back.
      event.preventDefault();
      submit();
    });
    check();
    modal.open();
    input.focus();
    input.select();
}
