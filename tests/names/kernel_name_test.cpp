#include "rooftile/names/kernel_name.hpp"

#include <gtest/gtest.h>

namespace rooftile {
namespace {

/// Field by field, so that a failure names the field.
void expect_plan(const KernelName& name, int m, int n, int k, std::optional<int> stages) {
    EXPECT_EQ(name.tile_m, m) << name.name;
    EXPECT_EQ(name.tile_n, n) << name.name;
    EXPECT_EQ(name.tile_k, k) << name.name;
    EXPECT_EQ(name.stages, stages) << name.name;
}

void expect_types(const KernelName& name, const char* a, const char* b, const char* c, const char* accumulate) {
    EXPECT_EQ(name.types.a, a) << name.name;
    EXPECT_EQ(name.types.b, b) << name.name;
    EXPECT_EQ(name.types.c, c) << name.name;
    EXPECT_EQ(name.types.accumulate, accumulate) << name.name;
}

bool says(const KernelName& name, std::string_view field) {
    for (const std::string& sentence : name.uncertain)
        if (sentence.starts_with(field)) return true;
    return false;
}

TEST(KernelName, Nvjet) {
    const KernelName name = decode("nvjet_sm90_tst_192x8_64x8_2x1_v_bz_splitK_TNT");
    EXPECT_EQ(name.family, "nvjet");
    EXPECT_EQ(name.library, "cuBLAS");
    EXPECT_EQ(name.role, "gemm");
    EXPECT_EQ(name.arch, "sm_90");
    expect_types(name, "bf16", "bf16", "bf16", "fp32");
    expect_plan(name, 192, 8, 64, 8);
    EXPECT_EQ(name.cluster_m, 2);
    EXPECT_EQ(name.cluster_n, 1);
    EXPECT_EQ(name.split_k, true);
    EXPECT_EQ(name.layout, "TNT");
    EXPECT_EQ(name.raster, "along_m");
    EXPECT_EQ(name.threads, 384);
    EXPECT_TRUE(says(name, "schedule"));
    EXPECT_EQ(describe(name), "cuBLAS bf16 192x8x64, 8 stages, cluster 2x1, split-K, TNT");
}

TEST(KernelName, NvjetCooperativeEpilogueAndScales) {
    const KernelName bias = decode("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT");
    EXPECT_EQ(bias.schedule, "cooperative");
    EXPECT_EQ(bias.epilogue, "bias");
    EXPECT_EQ(bias.split_k, false);
    EXPECT_FALSE(says(bias, "schedule"));
    EXPECT_EQ(decode("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_splitK_gelubias_TNN").epilogue, "gelu + bias");

    // CUDA 12.8 prints no architecture; of those that say coop it follows.
    const KernelName old = decode("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT");
    expect_types(old, "fp16", "fp16", "fp16", "fp32");
    EXPECT_EQ(old.arch, "sm_90");
    EXPECT_TRUE(says(old, "arch"));
    EXPECT_EQ(decode("nvjet_tst_64x8_64x16_4x1_v_bz_TNT").arch, "");

    // fp8 has five letters: A, B, C, what is summed in, D.
    const KernelName fp8 = decode("nvjet_sm90_qrtsq_144x128_128x6_1x2_h_bz_coopA_algo2_TNN");
    expect_types(fp8, "fp8_e4m3", "fp8_e5m2", "fp8_e4m3", "fp32");
    expect_plan(fp8, 144, 128, 128, 6);

    const KernelName fp4 = decode("nvjet_sm100_oosss_128x256_256x5_2x1_2cta_v_bz_Avec16UE4M3_Bvec16UE4M3_TNT");
    expect_types(fp4, "fp4_e2m1", "fp4_e2m1", "fp32", "fp32");
    EXPECT_EQ(fp4.cta_pair, true);
    EXPECT_EQ(fp4.scaling, "a vec16 ue4m3, b vec16 ue4m3");
    EXPECT_EQ(fp4.schedule, "");
    EXPECT_EQ(fp4.threads, std::nullopt);

    EXPECT_EQ(decode("nvjet_sm90_sss_tf32_128x256_32x4_2x1_v_bz_coopA_TNT").types.a, "tf32");
    EXPECT_EQ(decode("nvjet_sm90_sss_tf32_128x256_32x4_2x1_v_bz_coopA_TNT").types.c, "fp32");
    EXPECT_EQ(decode("nvjet_sm90_tss_128x48_64x9_4x1_v_bz_TNT").types.c, "fp32");
}

TEST(KernelName, NvjetOfWarps) {
    const KernelName name = decode("nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN");
    expect_plan(name, 64, 64, 128, 3);
    EXPECT_EQ(name.arch, "sm_120");
    EXPECT_EQ(name.layout, "TNNN");
    EXPECT_EQ(name.cluster_m, std::nullopt);
    // 3 x (64 + 64) x 128 x 2 B.
    EXPECT_EQ(expected_shared_bytes(name), 98304);
}

TEST(KernelName, BytesOfStages) {
    // (192 + 8) x 64 x 2 B = 25600 a stage, of eight.
    const KernelName name = decode("nvjet_sm90_tst_192x8_64x8_2x1_v_bz_TNT");
    EXPECT_EQ(stage_bytes(name), 25600);
    EXPECT_EQ(expected_shared_bytes(name), 204800);
    // Of a pair of CTAs each holds half of B: (128 + 128) x 64 x 2 B, six times.
    EXPECT_EQ(expected_shared_bytes(decode("nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNT")), 196608);
    // CUTLASS writes the tile of both: (128 + 64) x 64 x 2 B.
    EXPECT_EQ(stage_bytes(decode("cutlass3x_sm100_tensorop_s256x128x16gemm_bf16_bf16_f32_bf16_bf16_256x128x64_2x1x1_0_tnn_align8_2sm")),
              24576);
    // fp4: (128 + 128) x 256 / 2 B.
    EXPECT_EQ(stage_bytes(decode("nvjet_sm100_oosss_128x256_256x5_2x1_2cta_v_bz_TNT")), 32768);
    EXPECT_EQ(expected_shared_bytes(decode(
                  "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas")),
              std::nullopt);
    EXPECT_EQ(stage_bytes(decode("ampere_sgemm_128x64_tn")), std::nullopt);  // no k
}

TEST(KernelName, Xmma) {
    const KernelName hopper =
        decode("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas");
    EXPECT_EQ(hopper.family, "xmma");
    EXPECT_EQ(hopper.library, "cuBLAS");
    EXPECT_EQ(hopper.arch, "sm_90");
    expect_types(hopper, "fp16", "fp16", "fp16", "fp32");
    expect_plan(hopper, 128, 128, 64, std::nullopt);
    EXPECT_EQ(hopper.layout, "TNN");
    EXPECT_EQ(hopper.split_k, false);
    EXPECT_EQ(hopper.threads, std::nullopt);  // launched with 128, 256 or 384

    const KernelName ampere = decode(
        "sm80_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize256x64x32_stage3_warpsize4x1x1_tensor16x8x8_aligna4_alignc4_execute_kernel__5x_"
        "cublas");
    expect_types(ampere, "tf32", "tf32", "fp32", "fp32");
    expect_plan(ampere, 256, 64, 32, 3);
    EXPECT_EQ(ampere.threads, 128);
    EXPECT_EQ(ampere.instruction, "m16n8k8");
    EXPECT_EQ(ampere.alignment_bytes, 4);
    EXPECT_EQ(ampere.split_k, std::nullopt);  // the grid alone says it

    // Three types in memory: A, B, C.
    expect_types(decode("sm89_xmma_gemm_e5m2e4m3bf16_e5m2e4m3f32_f32_tn_n_tilesize128x64x64_stage4_warpsize2x2x1_tensor16x8x32_execute_"
                        "kernel__5x_cublas"),
                 "fp8_e5m2", "fp8_e4m3", "bf16", "fp32");
    const KernelName sum = decode(
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_split_k_kernel__5x_"
        "cublas");
    EXPECT_EQ(sum.role, "reduce");
    EXPECT_EQ(expected_shared_bytes(sum), std::nullopt);
    EXPECT_EQ(describe(sum), "cuBLAS fp32 reduce: split-K parts added up");

    const KernelName conv = decode(
        "sm80_xmma_fprop_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x16x32_stage1_warpsize4x1x1_g1_tensor16x8x16_"
        "execute_kernel__5x_cudnn");
    EXPECT_EQ(conv.role, "conv");
    EXPECT_EQ(conv.operation, "fprop");
    EXPECT_EQ(conv.library, "cuDNN");
    EXPECT_EQ(conv.layout, "nhwckrsc_nhwc");
    expect_plan(conv, 128, 16, 32, 1);
}

TEST(KernelName, Cutlass) {
    const KernelName name = decode("cutlass_80_simt_sgemm_256x128_8x4_nn_align1");  // the one that [M27] reads
    EXPECT_EQ(name.family, "cutlass2");
    EXPECT_EQ(name.arch, "sm_80");
    expect_types(name, "fp32", "fp32", "fp32", "fp32");
    expect_plan(name, 256, 128, 8, 4);
    EXPECT_EQ(name.layout, "NN");
    EXPECT_EQ(name.alignment_bytes, 4);
    EXPECT_EQ(describe(name), "CUTLASS fp32 256x128x8, 4 stages, NN");

    const KernelName half = decode(
        "void "
        "cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8>(cutlass_80_tensorop_f16_s16816gemm_relu_f16_"
        "128x128_32x4_tn_align8::Params)");
    expect_types(half, "fp16", "fp16", "fp16", "fp32");
    expect_plan(half, 128, 128, 32, 4);
    EXPECT_EQ(half.epilogue, "relu");
    EXPECT_EQ(half.instruction, "m16n8k16");
    EXPECT_EQ(half.alignment_bytes, 16);
    expect_types(decode("_ZN7cutlass7Kernel2I57cutlass_80_tensorop_s16816gemm_bf16_64x128_64x4_tn_align2EEvNT_6ParamsE"), "bf16", "bf16",
                 "fp32", "fp32");
    expect_types(decode("cutlass_80_tensorop_h16816gemm_128x128_64x3_tn_align8"), "fp16", "fp16", "fp16", "fp16");
    const KernelName tf32 = decode("cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4");
    EXPECT_EQ(tf32.types.a, "tf32");
    EXPECT_TRUE(says(tf32, "types"));
    EXPECT_EQ(decode("cutlass_75_tensorop_s1688gemm_bf16_64x64_tn_align1").tile_n, 64);
    EXPECT_EQ(decode("cutlass_75_tensorop_s1688gemm_bf16_64x64_tn_align1").tile_k, std::nullopt);
}

TEST(KernelName, CutlassThree) {
    const KernelName name = decode(
        "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_ntn_align8_warpspecialized_pingpong_epi_tma");
    EXPECT_EQ(name.family, "cutlass3");
    EXPECT_EQ(name.arch, "sm_90");
    expect_types(name, "bf16", "bf16", "bf16", "fp32");
    expect_plan(name, 128, 128, 64, std::nullopt);  // 0 stages: as many as fit
    EXPECT_EQ(name.cluster_m, 2);
    EXPECT_EQ(name.layout, "NTN");
    EXPECT_EQ(name.schedule, "pingpong");
    EXPECT_EQ(name.instruction, "m64n128k16");
    EXPECT_EQ(name.alignment_bytes, 16);

    const KernelName scaled = decode(
        "cutlass3x_sm100_bstensorop_s256x192x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_256x192x256_0_tnn_align32_o_vs16_2sm_bias_"
        "f16_relu");
    expect_types(scaled, "fp4_e2m1", "fp4_e2m1", "fp16", "fp32");
    EXPECT_EQ(scaled.cta_pair, true);
    EXPECT_EQ(scaled.epilogue, "bias + relu");

    const KernelName collective = decode(
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, "
        "cutlass::gemm::collective::CollectiveMma<"
        "cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<4, cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, "
        "cutlass::gemm::KernelTmaWarpSpecializedCooperative>, "
        "cute::tuple<cute::C<128>, cute::C<256>, cute::C<64> >, cutlass::bfloat16_t, cute::tuple<long, cute::C<1>, long>, "
        "cutlass::bfloat16_t, "
        "cute::tuple<long, cute::C<1>, long>, int>, int, void>>(int)");
    EXPECT_EQ(collective.family, "cutlass3");
    expect_plan(collective, 128, 256, 64, 4);
    EXPECT_EQ(collective.cluster_m, 2);
    EXPECT_EQ(collective.schedule, "cooperative");
    EXPECT_EQ(collective.types.b, "bf16");
    EXPECT_EQ(collective.arch, "sm_90");
}

TEST(KernelName, CublasBeforeAndBeside) {
    const KernelName name = decode("ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_relu_f2f_stages_64x6_tn");
    EXPECT_EQ(name.family, "cublas");
    EXPECT_EQ(name.arch, "sm_80");
    expect_types(name, "fp16", "fp16", "fp16", "fp32");
    expect_plan(name, 64, 64, 64, 6);
    EXPECT_EQ(name.layout, "TN");
    expect_types(decode("volta_sgemm_128x64_nn"), "fp32", "fp32", "fp32", "fp32");
    EXPECT_EQ(decode("_5x_cudnn_ampere_fp16_s16816cudnn_fp16_128x128_ldg8_relu_f2f_exp_stages_64x3_small_nhwc_tn_v1").family, "cudnn");
    const KernelName gemv = decode(
        "_ZN8internal5gemvx6kernelIii13__nv_bfloat16fffLb0ELb1ELb1ELb0ELi7ELb0E18cublasGemvParamsExIi30cublasGemvTensorStridedBatchedIKS2_"
        "ES4_IKfES4_IfEfEEENSt9enable_"
        "ifIXntT5_EvE4typeET11_");
    EXPECT_EQ(gemv.role, "gemv");
    expect_types(gemv, "bf16", "fp32", "fp32", "");
    EXPECT_EQ(decode("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>(int)").role, "reduce");
    EXPECT_EQ(decode("copy_kernel(float*)").family, "unknown");
}

TEST(KernelName, Frameworks) {
    const KernelName point = decode("triton_poi_fused_add_mul_0");
    EXPECT_EQ(point.family, "inductor");
    EXPECT_EQ(point.role, "elementwise");
    EXPECT_EQ(point.operation, "add mul");
    EXPECT_EQ(describe(point), "torch.compile elementwise: add mul");
    EXPECT_EQ(decode("triton_red_fused__softmax__to_copy_add_exp_gelu_prepare_softmax_online_sub_0").role, "reduce");
    EXPECT_EQ(decode("triton_tem_fused_addmm_0").role, "gemm");
    EXPECT_EQ(decode("triton_tem_fused_flex_attention_0").role, "attention");
    EXPECT_EQ(decode("matmul_kernel_0d1d2d3de4de5de6c7de8c9de10c").family, "triton");

    const KernelName add = decode(
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, "
        "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)");
    EXPECT_EQ(add.family, "pytorch");
    EXPECT_EQ(add.role, "elementwise");
    EXPECT_EQ(add.operation, "add");
    EXPECT_EQ(add.types.a, "fp32");
    EXPECT_EQ(describe(add), "PyTorch fp32 elementwise: add");
    const KernelName gelu = decode(
        "_ZN2at6native29vectorized_elementwise_kernelILi8EZZZNS0_18GeluCUDAKernelImplERNS_18TensorIteratorBaseENS0_8GeluTypeEENKUlvE0_"
        "clEvENKUlvE2_clEvEUlN3c108BFloat16EE_"
        "St5arrayIPcLm2EEEEviT0_T1_");
    EXPECT_EQ(gelu.operation, "gelu");
    EXPECT_EQ(gelu.types.a, "bf16");
    const KernelName mul = decode(
        "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
        "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)");
    EXPECT_EQ(mul.operation, "mul");
    EXPECT_EQ(decode("void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, int>(int)").operation, "softmax");
    EXPECT_EQ(decode("void at::native::<unnamed>::CatArrayBatchedCopy<(int)4, float>(int)").role, "copy");
}

TEST(KernelName, WhatNobodyKnows) {
    for (const char* text :
         {"", " ", "main", "_Z", "_ZN", "kernel<", "foo<bar<1,2>", ">>>", "((((", "nvjet", "a::b<(c)1", "\xff\xfe", "<unnamed>::f"}) {
        const KernelName name = decode(text);
        EXPECT_EQ(name.family, "unknown") << text;
        EXPECT_EQ(describe(name), "unknown kernel");
        EXPECT_EQ(expected_shared_bytes(name), std::nullopt);
    }
    EXPECT_EQ(decode("nvjet_").tile_m, std::nullopt);
    EXPECT_EQ(decode("nvjet_sm90_xyz_1x_2x2x2x2_TNT").tile_m, std::nullopt);
    EXPECT_EQ(decode("cutlass_80_tensorop_").tile_m, std::nullopt);
}

}  // namespace
}  // namespace rooftile
