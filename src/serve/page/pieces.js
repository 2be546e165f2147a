// The shapes of pieces, each in a box of 100 x 100 around the middle.

import { svg } from "./dom.js";

// Outlines in a box of 100 x 100 with the origin at its top left.
const CHESS = {
  pawn: "M50 17a13 13 0 0 1 8.5 22.8C63 42 66 46 66 51H57.5c.5 10 4 18 12.5 25 4 3 5 6 5 11H25c0-5 1-8 5-11 8.5-7 12-15 12.5-25H34c0-5 3-9 7.5-11.200A13 13 0 0 1 50 17Z",
  rook: "M24 15H36V24H44V15H56V24H64V15H76V35L67 43V67L75 76V87H25V76L33 67V43L24 35Z",
  knight:
    "M31 87C30 68 38 60 47 50C40 53 35 55 30 62C27 66 19 65 16 60C15 57 17 54 19 51L29 34C30 27 33 22 38 18L37 8L48 15C67 17 83 33 81 66C81 73 80 80 79 87Z",
  bishop:
    "M50 8a6 6 0 0 1 4.5 10C63 25 69 35 69 45C69 53 65 59 60 63L63 73C72 74 76 79 77 87H23C24 79 28 74 37 73L40 63C35 59 31 53 31 45C31 35 37 25 45.5 18A6 6 0 0 1 50 8Z",
  queen:
    "M12 28a6 6 0 1 1 7 5.800L30 52L31 22.500a6 6 0 1 1 5 0L45 49L47.5 19.500a6 6 0 1 1 5 0L55 49L64 22.500a6 6 0 1 1 5 0L70 52L81 33.800a6 6 0 1 1 5.5 1L77 66C75 70 75 73 77 76V87H23V76C25 73 25 70 23 66L13.5 34.800A6 6 0 0 1 12 28Z",
  king: "M46 6H54V13H61V21H54V31C57 33 59 36 60 39C74 31 90 40 86 54C84 61 79 65 77 70V87H23V70C21 65 16 61 14 54C10 40 26 31 40 39C41 36 43 33 46 31V21H39V13H46Z",
};

// Lines inside the outlines.
const DETAILS = {
  rook: "M33 43H67M33 67H67",
  knight: "M62 31C69 40 71 52 70 66",
  bishop: "M50 30V46M42 38H58M38 73H62",
  queen: "M26 68C40 63 60 63 74 68M25 77H75",
  king: "M50 62C50 50 55 42 61 39M50 62C50 50 45 42 39 39M24 70C40 64 60 64 76 70M24 78H76",
  pawn: "",
};

/** The shape of a piece as a group in the colour of its owner. */
export function drawPiece(piece, colours) {
  const colour = piece.owner === null || piece.owner === undefined ? "none" : (colours[piece.owner] ?? "none");
  const group = svg("g", { class: `piece colour-${colour} shape-${piece.shape}` });
  if (piece.shape === "disc") {
    group.append(
      svg("circle", { class: "disc-shadow", cx: 2, cy: 4, r: 43 }),
      svg("circle", { class: "disc", r: 43 }),
      svg("circle", { class: "disc-shine", cx: -13, cy: -15, r: 20 }),
      svg("circle", { class: "disc-rim", r: 30 }),
    );
  } else if (piece.shape === "ring") {
    group.append(svg("circle", { class: "stroke-piece", r: 28 }));
  } else if (piece.shape === "cross") {
    group.append(svg("path", { class: "stroke-piece", d: "M-27 -27L27 27M27 -27L-27 27" }));
  } else if (piece.shape in CHESS) {
    group.append(
      svg("path", { class: "outline", transform: "translate(-50 -50)", d: CHESS[piece.shape] }),
      svg("path", { class: "detail", transform: "translate(-50 -50)", d: DETAILS[piece.shape] }),
    );
    if (piece.shape === "knight") group.append(svg("circle", { class: "eye", cx: -15, cy: -14, r: 3.5 }));
  } else {
    const text = piece.shape === "name" ? piece.name : piece.mark;
    const letter = svg("text", { class: "letter", dy: "0.36em" }, text);
    // A word is as wide as a place.
    if (text.length > 1) letter.style.fontSize = `${Math.min(64, Math.round(150 / text.length))}px`;
    group.append(letter);
  }
  return group;
}

/** A piece as a small picture beside a text. */
export function pieceIcon(piece, colours) {
  const icon = svg("svg", { class: "piece-icon", viewBox: "-52 -52 104 104", "aria-hidden": "true" });
  icon.append(drawPiece(piece, colours));
  return icon;
}

/** The faces of dice as one picture that is read as "dice 6, 5". */
export function drawDie(face) {
  const spots = [[], [4], [0, 8], [0, 4, 8], [0, 2, 6, 8], [0, 2, 4, 6, 8], [0, 2, 3, 5, 6, 8]][face] ?? [];
  const pips = spots.map((spot) =>
    svg("circle", { class: "pip", cx: ((spot % 3) - 1) * 24, cy: (Math.floor(spot / 3) - 1) * 24, r: 9 }),
  );
  const die = svg("g", { class: "die" }, svg("rect", { x: -44, y: -44, width: 88, height: 88, rx: 16 }), pips);
  if (spots.length === 0) die.append(svg("text", { dy: "0.36em" }, String(face)));
  return die;
}
