//! Evaluates one position with an exported network, without vecaz: Connect Four after the moves 3, 3, 2.
//!
//!     vecaz export-weights assets/connect_four.safetensors --format onnx --out net.onnx
//!     cargo run --release --example evaluate_onnx

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = rten::Model::load_file("net.onnx")?;
    let mut obs = [0.0_f32; 2 * 6 * 7];
    obs[4 * 7 + 3] = 1.0; // own stone
    (obs[42 + 5 * 7 + 3], obs[42 + 5 * 7 + 2]) = (1.0, 1.0); // the other's
    let input = rten::ValueView::from_shape([1, 2, 6, 7], &obs)?;
    let outputs = [model.node_id("policy")?, model.node_id("value")?];
    for output in model.run(vec![(model.node_id("obs")?, input.into())], &outputs, None)? {
        println!("{:?}", output.into_shape_vec::<f32, 2>()?.1);
    }
    Ok(())
}
