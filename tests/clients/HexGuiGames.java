// Games of `vecaz engine` in HexGui (github.com/selinger/hexgui), whose window is driven by its own actions: clicks on cells, "Generate Computer Move".
//
//     xvfb-run -a java -ea -cp hexgui/lib/hexgui.jar tests/clients/HexGuiGames.java "target/release/vecaz engine runs/hex --sims 50" 20 [swap]
//
// The run needs the board of HexGui's start, 11x11, and with the word `swap` the rule of that name. In turns vecaz has black, white and both sides. A person's
// moves are random; with `swap` every other first one is a click on black's stone. A game ends when a chain on HexGui's board joins two borders: vecaz must name
// that winner, also after the whole game was taken back and played again, and resign. An error that HexGui shows, or a refusal, ends with exit code 1.

import hexgui.gui.*;
import hexgui.hex.*;
import java.awt.*;
import java.awt.event.ActionEvent;
import java.io.*;
import java.util.*;
import java.util.List;
import java.util.function.IntUnaryOperator;
import java.util.stream.*;
import javax.swing.*;

public class HexGuiGames {
    static final int SIZE = 11;
    static final ByteArrayOutputStream said = new ByteArrayOutputStream();
    static HexGui gui;

    static Object get(String name) throws Exception {
        var field = HexGui.class.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(gui);
    }

    static Set<Integer> cells(HexColor colour) throws Exception {
        var board = (GuiBoard) get("m_guiboard");
        var all = IntStream.range(0, SIZE * SIZE).filter(cell -> board.getColor(HexPoint.get(cell % SIZE, cell / SIZE)) == colour);
        return all.boxed().collect(Collectors.toCollection(TreeSet::new));
    }

    static void check(boolean isRight, String what) {
        if (isRight) return;
        System.err.println(what);
        Runtime.getRuntime().halt(1);
    }

    /** Does something in the window and waits until all commands to the program are answered; what HexGui logged. */
    static String act(Runnable action) throws Exception {
        var mark = said.size();
        var done = new boolean[1];
        SwingUtilities.invokeLater(() -> { action.run(); done[0] = true; });
        for (int quiet = 0, waited = 0; quiet < 4; waited++) {
            Thread.sleep(15);
            var text = said.toString();
            var sent = text.split("sendCommand: '", -1).length;
            quiet = done[0] && sent == text.split("controller: (success|error|invalid): ", -1).length ? quiet + 1 : 0;
            for (var window : Window.getWindows())
                check(!(window instanceof JDialog dialog && dialog.isModal() && dialog.isVisible()), "HexGui shows an error:\n" + text.substring(mark));
            check(waited < 4000, "no answer:\n" + text.substring(mark));
        }
        SwingUtilities.invokeAndWait(() -> {});
        return said.toString().substring(mark);
    }

    static String command(String name) throws Exception {
        return act(() -> gui.actionPerformed(new ActionEvent(gui, 0, name)));
    }

    /** Whether a chain joins the borders of a colour: black's are top and bottom. */
    static boolean joins(HexColor colour) throws Exception {
        var stones = cells(colour);
        IntUnaryOperator depth = cell -> colour == HexColor.BLACK ? cell / SIZE : cell % SIZE;
        var open = new ArrayDeque<>(stones.stream().filter(cell -> depth.applyAsInt(cell) == 0).toList());
        while (!open.isEmpty()) {
            int cell = open.pop(), x = cell % SIZE;
            if (!stones.remove(cell)) continue;
            if (depth.applyAsInt(cell) == SIZE - 1) return true;
            open.addAll(Set.of(cell - SIZE, cell + SIZE));
            if (x > 0) open.addAll(Set.of(cell - 1, cell + SIZE - 1));
            if (x < SIZE - 1) open.addAll(Set.of(cell + 1, cell - SIZE + 1));
        }
        return false;
    }

    public static void main(String[] args) throws Exception {
        var out = System.out;
        System.setOut(new PrintStream(said, true));
        hexgui.Main.main(new String[] {"-program", args[0]});
        for (; gui == null; Thread.sleep(1000))
            for (var frame : Frame.getFrames()) if (frame instanceof HexGui found && found.isVisible()) gui = found;
        ((GuiPreferences) get("m_preferences")).put("auto-respond", false);
        var random = new Random(1);
        int games = Integer.parseInt(args[1]), moves = 0, swaps = 0;
        for (int game = 0; game < games; game++, moves += SIZE * SIZE - cells(HexColor.EMPTY).size()) {
            var reset = HexGui.class.getDeclaredMethod("resetGameChanged");
            reset.setAccessible(true);
            reset.invoke(gui);
            command("newgame");
            while (!joins(HexColor.BLACK) && !joins(HexColor.WHITE)) {
                var free = new ArrayList<>(cells(HexColor.EMPTY));
                var log = "";
                if (game % 3 == 2 || (get("m_tomove") == HexColor.BLACK) == (game % 3 == 0)) {
                    log = command("genmove");
                } else {
                    var takes = args.length > 2 && free.size() == SIZE * SIZE - 1 && gui.isSwapAllowed() && random.nextBoolean();
                    var cell = takes ? cells(HexColor.BLACK).iterator().next() : free.get(random.nextInt(free.size()));
                    log = act(() -> gui.fieldClicked(HexPoint.get(cell % SIZE, cell / SIZE), false, false)) + (takes ? "swap-pieces" : "");
                }
                swaps += log.contains("swap-pieces") ? 1 : 0;
                var left = free.size() - (log.contains("swap-pieces") ? 0 : 1);
                check(cells(HexColor.EMPTY).size() == left && !log.contains("controller: error"), "no legal move:\n" + log);
            }
            var winner = joins(HexColor.BLACK) ? "B+" : "W+";
            check(command("genmove").contains("resign"), "no resignation");
            for (var step : List.of("game_end", "game_beginning", "game_end")) {
                var log = command(step) + act(() -> gui.commandEntered("final_score\n"));
                check(log.contains(step.equals("game_end") ? "'" + winner + "'" : "cannot score"), winner + " on the board, but:\n" + log);
            }
            out.println("game " + (game + 1) + ": " + winner);
        }
        var log = said.toString().replaceAll("controller: error: '(unknown command|cannot score)'", "");
        check(!log.contains("controller: error") && !log.contains("controller: invalid"), log);
        command("disconnect-program");
        out.println(games + " games, " + moves + " stones, " + swaps + " swaps, no error");
        System.exit(0);
    }
}
