// Who sits where: a person or a network with its strength, per seat.

import { html, setAttributes } from "./dom.js";
import { counted, optionsText } from "./wording.js";

const STRENGTHS = [
  [{ simulations: 1 }, "the network alone"],
  [{ simulations: 25 }, "25 simulations"],
  [{ simulations: 100 }, "100 simulations"],
  [{ simulations: 400 }, "400 simulations"],
  [{ simulations: 800 }, "800 simulations"],
  [{ simulations: 3200 }, "3,200 simulations"],
  [{ seconds: 1 }, "1 second"],
  [{ seconds: 5 }, "5 seconds"],
  [{ seconds: 30 }, "30 seconds"],
];
export const DEFAULT_STRENGTH = { simulations: 400 };

/** True if a network that was made with the options `made` plays a game with `options`: those of its span may be others. */
const serves = (made, options, span) =>
  Object.entries(made ?? {})
    .filter(([name]) => !span.includes(name))
    .every(([name, value]) => String(options?.[name]) === String(value));

/** The options of a game that say only where it starts, after how many plies it is cut off, and what networks observe. */
export function spanOptions(info, game) {
  const { options = [] } = info.games.find(({ name }) => name === game) ?? {};
  return options.filter(({ span }) => span).map(({ name }) => name);
}

/** The networks that play a game with these options; `uniform` is always among them. */
export function fittingNetworks(info, game, options) {
  const span = spanOptions(info, game);
  return info.networks.filter(
    (network) => network.game === null || (network.game === game && serves(network.options, options, span)),
  );
}

/** Of the networks that play a game with these options the one called `wanted`, else the first. */
export function fittingNetwork(info, game, options, wanted) {
  const fitting = fittingNetworks(info, game, options);
  return (fitting.find(({ id }) => id === wanted) ?? fitting[0]).id;
}

/** A network in one line. */
export const networkLabel = (network) => (network.game === null ? "Search without a network" : network.label);

/** What a list of networks tells about one. */
export function networkFacts(network) {
  const facts = [];
  if (network.options) facts.push(optionsText(network.options));
  if (network.updates) facts.push(counted(network.updates, "update"));
  if (network.size) facts.push(network.size);
  return facts.filter(Boolean).join(" · ");
}

function strengthSelect(chosen, onchange) {
  const key = (strength) => JSON.stringify([strength.simulations ?? null, strength.seconds ?? null]);
  const known = STRENGTHS.some(([strength]) => key(strength) === key(chosen));
  const words = chosen.seconds ? counted(chosen.seconds, "second") : counted(chosen.simulations ?? 800, "simulation");
  const all = known ? STRENGTHS : [...STRENGTHS, [chosen, words]];
  const select = html(
    "select",
    { onchange: () => choose(), class: "strength" },
    ...all.map(([strength, text]) =>
      html("option", { value: key(strength), selected: key(strength) === key(chosen) }, text),
    ),
    html("option", { value: "other" }, "other number…"),
  );
  const number = html("input", {
    type: "number",
    min: 1,
    max: 1000000,
    step: 1,
    hidden: true,
    oninput: () => typed(),
    "aria-label": "Simulations",
  });
  const choose = () => {
    const other = select.value === "other";
    number.hidden = !other;
    if (other) {
      number.value = String(chosen.simulations ?? 1000);
      number.focus();
      typed();
      return;
    }
    const [simulations, seconds] = JSON.parse(select.value);
    onchange(simulations === null ? { seconds } : { simulations });
  };
  const typed = () => {
    const simulations = Math.round(Number(number.value));
    setAttributes(number, { "aria-invalid": !(simulations >= 1) });
    if (simulations >= 1) onchange({ simulations });
  };
  return [select, number];
}

/** Rows of a form, one per seat; `seats` is changed in place, and `onchange` called after. With hidden hands no network can ponder. */
export function seatRows({ players, seats, networks, canPonder = true, onchange }) {
  return players.map((player, index) => {
    const seat = seats[index];
    const who = html(
      "select",
      { class: "who", "aria-label": `${player.name} is played by` },
      html("option", { value: "human", selected: seat.kind === "human" }, "A person"),
      ...networks.map((network) =>
        html(
          "option",
          { value: network.id, selected: seat.kind === "engine" && seat.network === network.id },
          networkLabel(network),
        ),
      ),
    );
    const strength = html("span", { class: "strength-field" });
    const draw = () => {
      if (seats[index].kind === "human") {
        strength.replaceChildren();
        return;
      }
      const { simulations, seconds } = seats[index];
      const now = simulations || seconds ? { simulations, seconds } : DEFAULT_STRENGTH;
      const [select, number] = strengthSelect(now, (next) => {
        const { kind, network, ponder } = seats[index];
        seats[index] = { kind, network, ...(ponder ? { ponder } : {}), ...next };
        onchange();
      });
      select.setAttribute("aria-label", `Strength of ${player.name}`);
      const ponder = html("input", {
        type: "checkbox",
        checked: seats[index].ponder ?? false,
        "aria-label": `${player.name} thinks on the time of people`,
      });
      ponder.addEventListener("change", () => {
        seats[index] = { ...seats[index], ponder: ponder.checked };
        onchange();
      });
      const label = html("label", { class: "ponder", title: "It thinks while a person thinks" }, ponder, "ponders");
      strength.replaceChildren(select, number, ...(canPonder ? [label] : []));
    };
    who.addEventListener("change", () => {
      seats[index] =
        who.value === "human" ? { kind: "human" } : { kind: "engine", network: who.value, ...DEFAULT_STRENGTH };
      draw();
      onchange();
    });
    draw();
    return html(
      "div",
      { class: "seat-row" },
      html("span", { class: `dot colour-${player.colour ?? "none"}`, "aria-hidden": "true" }),
      html("span", { class: "seat-name" }, player.name, player.aim ? html("small", {}, player.aim) : null),
      who,
      strength,
    );
  });
}

/** A seat as the server takes it, from a player of a table's state. */
export function seatOf({ kind, network, simulations, seconds, ponder }) {
  if (kind === "human") return { kind };
  const seat = { kind, network };
  if (simulations) seat.simulations = simulations;
  if (seconds) seat.seconds = seconds;
  if (ponder) seat.ponder = true;
  return seat;
}
